"""The findings on a fleet, as plain data: reports only print this, and scripts get it as a document."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.cluster.fleet import comparability, differences, reading, slow
from envkit.cluster.fleet.differences import Fact
from envkit.cluster.fleet.messages import NoUsableNode
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.cluster.fleet.slow import ERROR_RATE, Judged, Spread
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.common.text_enum import TextEnum

# Nodes are named that began farther from the middle one, by their own clocks, than so many seconds, and than so many
# times what the middle half of all nodes is apart (after J. W. Tukey: Exploratory Data Analysis, 1977, outer fences).
APART_S, APART_QUARTILES = 3600.0, 3


class NodeVerdict(TextEnum):
    """The findings on a node compared with the others of its kind, in the order in which they are counted."""

    OK = "ok"  # the middle of its interval is within the allowance
    NOT_CERTAIN = "not certain"  # the middle is beyond the allowance, but not the whole interval
    SLOW = "slow"  # the whole interval is beyond the allowance
    NOT_JUDGED = "not judged"  # there are too few nodes of its kind


@dataclass(frozen=True)
class FleetResult:
    """One node: its time over that of the middle node of its kind, with the interval, and what that means."""

    node: Node
    ratio: float
    low: float
    high: float
    verdict: NodeVerdict
    reference_kernel: float | None  # the node's own over its kind's median; None: not known, or it was other work
    clock: float | None  # the same
    unusual: list[tuple[str, str, str]]  # in what it differs from most: name, own, theirs; empty where ok

    def to_json(self) -> dict[str, object]:
        """Return the result as plain data. ``ratio`` is the node's time over that of the middle node of its kind."""
        return {
            "node": self.node.name,
            "verdict": str(self.verdict),
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high if math.isfinite(self.high) else None,  # JSON has no infinity
            "samples": len(self.node.step_s),
            "samples_with_interference": self.node.samples_with_interference,
            "finished": self.node.finished,
            "began": self.node.began,
            "reference_kernel_ratio": self.reference_kernel,
            "clock_ratio": self.clock,
            "unusual": [{"fact": name, "value": value, "most": usual} for name, value, usual in self.unusual],
        }


@dataclass(frozen=True)
class Kind:
    """The nodes of one kind of machine; ``differences`` are the facts in which they differ."""

    name: str
    spread: Spread
    judged: bool
    results: list[FleetResult]
    differences: list[Fact]

    def to_json(self) -> dict[str, object]:
        """Return the nodes of the kind as plain data. Times are in seconds."""
        return {
            "kind": self.name,
            "judged": self.judged,
            **asdict(self.spread),
            "quantiles": {f"{share:g}": ratio for share, ratio in self.spread.quantiles.items()},
            "nodes": [result.to_json() for result in self.results],
            "differences": [
                {"fact": fact.name, "values": [{**asdict(value), "shared": value.shared} for value in fact.values]}
                for fact in self.differences
            ],
        }


@dataclass(frozen=True)
class Fleet:
    """``margin`` is the share of more time that is let pass; ``side`` how often either side of an interval may miss."""

    place: str
    profiles: list[str]
    workloads: list[str]
    kinds: list[Kind]
    left_out: list[LeftOut]
    margin: float
    side: float

    @property
    def results(self) -> list[FleetResult]:
        return [result for kind in self.kinds for result in kind.results]

    def of(self, verdict: NodeVerdict) -> list[FleetResult]:
        """The nodes of one verdict, the slowest first."""
        return sorted(
            (result for result in self.results if result.verdict == verdict), key=lambda result: -result.ratio
        )

    @property
    def apart(self) -> list[FleetResult]:
        """Nodes whose clocks were far from those of most when they began, the farthest first."""
        begun = [result.node.began for result in self.results]
        if len(begun) < 2:
            return []
        lower, middle, upper = statistics.quantiles(begun, n=4, method="inclusive")
        limit = max(APART_S, APART_QUARTILES * (upper - lower))
        far = [result for result in self.results if abs(result.node.began - middle) > limit]
        return sorted(far, key=lambda result: -abs(result.node.began - middle))

    @property
    def middle(self) -> float:
        """When the middle node began, in seconds since 1970."""
        return statistics.median(result.node.began for result in self.results)

    def counts(self) -> dict[str, int]:
        """Return how many nodes there are by verdict, and how many were left out."""
        return {**{str(verdict): len(self.of(verdict)) for verdict in NodeVerdict}, "left out": len(self.left_out)}

    def to_json(self) -> dict[str, object]:
        """Return the findings as plain data, with every node. Shares are of 1, times in seconds."""
        return {
            "place": self.place,
            "profiles": self.profiles,
            "workloads": self.workloads,
            "margin": self.margin,
            "false_alarms_at_most": ERROR_RATE,
            "interval_miss_per_side": self.side,
            "nodes_by_verdict": self.counts(),
            "kinds": [kind.to_json() for kind in self.kinds],
            "left_out": [node.to_json() for node in self.left_out],
        }


def find(place: Path, profile: str | None, margin: float, requested: Sequence[str] = ()) -> Fleet:
    """Read the records in ``place`` and judge their nodes; see ``reading.read`` and ``slow.judge``.

    ``requested`` are the nodes that it should have, if that is known. Raise InputError if no node can be used.
    """
    nodes, unusable = reading.read(place, profile, requested)
    groups, not_alike = comparability.groups(nodes)
    left_out = sorted([*unusable, *not_alike], key=lambda node: node.name)
    if not groups:
        first = About(left_out[0].name, left_out[0].reason)
        raise InputError(NoUsableNode(str(place), len(left_out), first))
    judgements, side = slow.judge([slow.measure([node.step_s for node in group]) for group in groups], margin)
    kinds = [_kind(group, judged) for group, judged in zip(groups, judgements, strict=True)]
    used = [node for group in groups for node in group]
    return Fleet(
        place=str(place),
        profiles=_commonest_first(node.profile for node in used),
        workloads=_commonest_first(node.workload for node in used),
        kinds=kinds,
        left_out=left_out,
        margin=margin,
        side=side,
    )


def _commonest_first(names: Iterable[str]) -> list[str]:
    return [name for name, _ in Counter(names).most_common()]


def _kind(nodes: Sequence[Node], judged: Judged) -> Kind:
    facts = differences.facts(nodes)
    usual = differences.commonest(facts)
    verdicts = _verdicts(judged)
    kernels, clocks = _to_median(_comparable_kernels(nodes)), _to_median([node.clock_mhz for node in nodes])
    ratios, lows, highs = (values.tolist() for values in (judged.ratio, judged.low, judged.high))
    explained = (NodeVerdict.SLOW, NodeVerdict.NOT_CERTAIN)
    unusual = [
        differences.unusual(of_node, usual) if verdict in explained else []
        for of_node, verdict in zip(facts, verdicts, strict=True)
    ]
    columns = zip(nodes, ratios, lows, highs, verdicts, kernels, clocks, unusual, strict=True)
    results = [FleetResult(*row) for row in columns]
    varied = differences.differences(facts, [verdict == NodeVerdict.SLOW for verdict in verdicts], ratios)
    return Kind(nodes[0].kind, judged.spread, judged.judged, results, varied)


def _verdicts(judged: Judged) -> list[NodeVerdict]:
    if not judged.judged:
        return [NodeVerdict.NOT_JUDGED] * len(judged.ratio)
    limit = 1 + judged.spread.allowance
    return [
        NodeVerdict.SLOW if slow_one else NodeVerdict.NOT_CERTAIN if ratio > limit else NodeVerdict.OK
        for ratio, slow_one in zip(judged.ratio.tolist(), judged.slow.tolist(), strict=True)
    ]


def _comparable_kernels(nodes: Sequence[Node]) -> list[float | None]:
    """The reference kernel's times of those nodes on which it was the same work as on most."""
    digests = Counter(node.reference_kernel_digest for node in nodes if node.reference_kernel_digest is not None)
    usual = digests.most_common(1)[0][0] if digests else None
    return [node.reference_kernel_s if node.reference_kernel_digest == usual else None for node in nodes]


def _to_median(values: Sequence[float | None]) -> list[float | None]:
    measured = [value for value in values if value is not None]
    middle = statistics.median(measured) if measured else 0.0
    return [value / middle if value is not None and middle > 0 else None for value in values]
