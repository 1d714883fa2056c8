"""The findings on a fleet as a document for scripts, with every node."""

from __future__ import annotations

import math
from dataclasses import asdict

from envkit.cluster.fleet import sentences
from envkit.cluster.fleet.findings import Fleet, FleetResult, Kind
from envkit.cluster.fleet.slow import ERROR_RATE


def document(fleet: Fleet) -> dict[str, object]:
    """Shares are of 1, times in seconds; ``ratio`` is a node's time over that of the middle node of its kind."""
    return {
        "place": fleet.place,
        "profiles": fleet.profiles,
        "workloads": fleet.workloads,
        "margin": fleet.margin,
        "false_alarms_at_most": ERROR_RATE,
        "interval_miss_per_side": fleet.side,
        "nodes_by_verdict": {**sentences.verdict_counts(fleet), "left out": len(fleet.left_out)},
        "kinds": [_kind(kind) for kind in fleet.kinds],
        "left_out": [one.to_json() for one in fleet.left_out],
    }


def _kind(kind: Kind) -> dict[str, object]:
    return {
        "kind": kind.name,
        "judged": kind.judged,
        **asdict(kind.spread),
        "quantiles": {f"{share:g}": ratio for share, ratio in kind.spread.quantiles.items()},
        "nodes": [_node(one) for one in kind.results],
        "differences": [
            {"fact": fact.name, "values": [{**asdict(value), "shared": value.shared} for value in fact.values]}
            for fact in kind.differences
        ],
    }


def _node(one: FleetResult) -> dict[str, object]:
    return {
        "node": one.node.name,
        "verdict": str(one.verdict),
        "ratio": one.ratio,
        "low": one.low,
        "high": one.high if math.isfinite(one.high) else None,  # JSON has no infinity
        "samples": len(one.node.step_s),
        "samples_with_interference": one.node.samples_with_interference,
        "finished": one.node.finished,
        "began": one.node.began,
        "reference_kernel_ratio": one.reference_kernel,
        "clock_ratio": one.clock,
        "unusual": [{"fact": name, "value": own, "most": usual} for name, own, usual in one.unusual],
    }
