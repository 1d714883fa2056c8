"""The findings on a fleet in Prometheus' text format (version 0.0.4), as node_exporter's textfile collector takes it.

The collector refuses values with timestamps, so the time of a measurement is a value of its own. Source:
https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from envkit.cluster.fleet.diff import Change, ChangeVerdict, Diff, KindDiff
from envkit.cluster.fleet.findings import Fleet, FleetResult, Kind, NodeVerdict
from envkit.cluster.fleet.report_messages import HELP
from envkit.common.printable import encoded

# The gauges of each, by names of which ``HELP`` says what they are.
OF_NODES: dict[str, Callable[[FleetResult], float | None]] = {
    "envkit_node_time_ratio": lambda result: result.ratio,
    "envkit_node_time_low_ratio": lambda result: result.low,
    "envkit_node_time_high_ratio": lambda result: result.high,
    "envkit_node_slow": lambda result: result.verdict == NodeVerdict.SLOW,
    "envkit_node_samples": lambda result: len(result.node.step_s),
    "envkit_node_interference_samples": lambda result: result.node.samples_with_interference,
    "envkit_node_reference_kernel_ratio": lambda result: result.reference_kernel,
    "envkit_node_measured_timestamp_seconds": lambda result: result.node.began,
}
OF_CHANGES: dict[str, Callable[[Change], float | None]] = {
    "envkit_node_change_ratio": lambda change: change.ratio,
    "envkit_node_change_low_ratio": lambda change: change.low,
    "envkit_node_change_high_ratio": lambda change: change.high,
    "envkit_node_became_slower": lambda change: (
        None if change.verdict == ChangeVerdict.NOT_JUDGED else change.verdict == ChangeVerdict.SLOWER
    ),
}
OF_KIND_CHANGES: dict[str, Callable[[KindDiff], float]] = {
    "envkit_fleet_change_ratio": lambda kind: kind.fleet_ratio,
    "envkit_fleet_change_allowance_ratio": lambda kind: kind.allowance,
    "envkit_fleet_change_measured_timestamp_seconds": lambda kind: kind.measured,
}
OF_KINDS: dict[str, Callable[[Kind], float]] = {
    "envkit_fleet_step_seconds": lambda kind: kind.spread.median_s,
    "envkit_fleet_spread_ratio": lambda kind: kind.spread.between,
    "envkit_fleet_allowance_ratio": lambda kind: kind.spread.allowance,
    "envkit_fleet_measured_timestamp_seconds": lambda kind: max(result.node.began for result in kind.results),
}


def render(fleet: Fleet) -> bytes:
    """Return one value per node or kind for each gauge. Unknown values are left out."""
    return encoded("".join(f"{line}\n" for line in _lines(fleet)))


def render_changes(diff: Diff) -> bytes:
    """Return what became of each node since an earlier report."""
    changes = [(kind.name, change) for kind in diff.kinds for change in kind.changes]
    labels = [{"node": change.node, "kind": kind} for kind, change in changes]
    lines = [
        *_gauge("envkit_fleet_change_complete", [({}, diff.complete)]),
        *_gauge("envkit_fleet_change_nodes", _by_verdict(diff.counts())),
    ]
    for name, of_kind in OF_KIND_CHANGES.items():
        lines += _gauge(name, [({"kind": kind.name}, of_kind(kind)) for kind in diff.kinds])
    for name, of_change in OF_CHANGES.items():
        values = [of_change(change) for _, change in changes]
        lines += _gauge(name, zip(labels, values, strict=True))
    return encoded("".join(f"{line}\n" for line in lines))


def _lines(fleet: Fleet) -> Iterator[str]:
    yield from _gauge("envkit_fleet_nodes", _by_verdict(fleet.counts()))
    for name, of_kind in OF_KINDS.items():
        yield from _gauge(name, [({"kind": kind.name}, of_kind(kind)) for kind in fleet.kinds])
    labels = [
        {"node": result.node.name, "profile": result.node.profile, "kind": result.node.kind} for result in fleet.results
    ]
    for name, of_node in OF_NODES.items():
        yield from _gauge(name, zip(labels, map(of_node, fleet.results), strict=True))


def _by_verdict(counts: Mapping[str, int]) -> list[tuple[dict[str, str], float | None]]:
    return [({"verdict": verdict.replace(" ", "_")}, count) for verdict, count in counts.items()]


def _gauge(name: str, values: Iterable[tuple[dict[str, str], float | None]]) -> Iterator[str]:
    """Yield the lines of a gauge, by the labels of each value; none if no value is known."""
    samples = [(labels, value) for labels, value in values if value is not None]
    if samples:
        yield f"# HELP {name} {HELP[name]}"
        yield f"# TYPE {name} gauge"
    for labels, value in samples:
        inner = ",".join(f'{label}="{_escaped(of_it)}"' for label, of_it in labels.items())
        yield f"{name}{inner and f'{{{inner}}}'} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return f"{value:.0f}" if float(value).is_integer() else repr(float(value))
