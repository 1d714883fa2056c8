"""What was found of a fleet in Prometheus' text format (version 0.0.4), as node_exporter's textfile collector takes it.

That collector refuses values with a time of their own, so there are none: when nodes were measured is a value too.
Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from envkit.cluster.fleet import sentences
from envkit.cluster.fleet.diff import Change, ChangeVerdict, Diff, KindDiff
from envkit.cluster.fleet.findings import Fleet, Kind, NodeVerdict, Result

OF_NODES: tuple[tuple[str, str, Callable[[Result], float | None]], ...] = (
    ("envkit_node_time_ratio", "Time per step over that of the middle node of its kind.", lambda one: one.ratio),
    ("envkit_node_time_low_ratio", "Lower end of the interval of the time ratio.", lambda one: one.low),
    ("envkit_node_time_high_ratio", "Upper end of the interval of the time ratio.", lambda one: one.high),
    ("envkit_node_slow", "1 if the node is slow, or else 0.", lambda one: one.verdict == NodeVerdict.SLOW),
    ("envkit_node_samples", "Samples that were measured.", lambda one: len(one.node.step_s)),
    ("envkit_node_interference_samples", "Samples that were disturbed from outside.",
     lambda one: one.node.samples_with_interference),
    ("envkit_node_reference_kernel_ratio", "Time of a fixed piece of work over the median of the node's kind.",
     lambda one: one.reference_kernel),
    ("envkit_node_measured_timestamp_seconds",
     "When the measurement began, by the node's own clock, in seconds since 1970.", lambda one: one.node.began),
)  # fmt: skip
OF_CHANGES: tuple[tuple[str, str, Callable[[Change], float | None]], ...] = (
    ("envkit_node_change_ratio", "Time over the middle node's, now over the same in an earlier report.",
     lambda one: one.ratio),
    ("envkit_node_change_low_ratio", "Lower end of the interval of the change.", lambda one: one.low),
    ("envkit_node_change_high_ratio", "Upper end of the interval of the change.", lambda one: one.high),
    ("envkit_node_became_slower", "1 if the node became slower, or else 0; none of a node that was not judged.",
     lambda one: None if one.verdict == ChangeVerdict.NOT_JUDGED else one.verdict == ChangeVerdict.SLOWER),
)  # fmt: skip
OF_KIND_CHANGES: tuple[tuple[str, str, Callable[[KindDiff], float]], ...] = (
    ("envkit_fleet_change_ratio", "Time per step of the middle node, now over the same in an earlier report.",
     lambda kind: kind.fleet_ratio),
    ("envkit_fleet_change_allowance_ratio", "By how much a node may change.", lambda kind: kind.allowance),
    ("envkit_fleet_change_measured_timestamp_seconds",
     "When the last node's later measurement began, by its own clock, in seconds since 1970.",
     lambda kind: kind.measured),
)  # fmt: skip
OF_KINDS: tuple[tuple[str, str, Callable[[Kind], float]], ...] = (
    ("envkit_fleet_step_seconds", "Time per step of the middle node.", lambda kind: kind.spread.median_s),
    ("envkit_fleet_spread_ratio", "Standard deviation between healthy nodes.", lambda kind: kind.spread.between),
    ("envkit_fleet_allowance_ratio", "More time that a node may take.", lambda kind: kind.spread.allowance),
    (
        "envkit_fleet_measured_timestamp_seconds",
        "When the last node's measurement began, by its own clock, in seconds since 1970.",
        lambda kind: max(one.node.began for one in kind.results),
    ),
)


def render(fleet: Fleet) -> bytes:
    """One value per node or kind for each gauge; a value that is not known is left out."""
    return "".join(f"{line}\n" for line in _lines(fleet)).encode()


def render_changes(diff: Diff) -> bytes:
    """What became of each node since an earlier report."""
    changes = [(kind.name, one) for kind in diff.kinds for one in kind.changes]
    labels = [{"node": one.node, "kind": kind} for kind, one in changes]
    complete = "1 if each node was judged, but for those that are new, or else 0."
    lines = [
        *_gauge("envkit_fleet_change_complete", complete, [({}, diff.complete)]),
        *_gauge("envkit_fleet_change_nodes", "Nodes by what became of them.", _by_verdict(diff.counts())),
    ]
    for name, text, of_kind in OF_KIND_CHANGES:
        lines += _gauge(name, text, [({"kind": kind.name}, of_kind(kind)) for kind in diff.kinds])
    for name, text, of_change in OF_CHANGES:
        values = [of_change(one) for _, one in changes]
        lines += _gauge(name, text, zip(labels, values, strict=True))
    return "".join(f"{line}\n" for line in lines).encode()


def _lines(fleet: Fleet) -> Iterator[str]:
    counts = {**sentences.verdict_counts(fleet), "left out": len(fleet.left_out)}
    yield from _gauge("envkit_fleet_nodes", "Nodes by what was found of them.", _by_verdict(counts))
    for name, text, of_kind in OF_KINDS:
        yield from _gauge(name, text, [({"kind": kind.name}, of_kind(kind)) for kind in fleet.kinds])
    labels = [{"node": one.node.name, "profile": one.node.profile, "kind": one.node.kind} for one in fleet.results]
    for name, text, of_node in OF_NODES:
        yield from _gauge(name, text, zip(labels, map(of_node, fleet.results), strict=True))


def _by_verdict(counts: Mapping[str, int]) -> list[tuple[dict[str, str], float | None]]:
    return [({"verdict": verdict.replace(" ", "_")}, count) for verdict, count in counts.items()]


def _gauge(name: str, text: str, values: Iterable[tuple[dict[str, str], float | None]]) -> Iterator[str]:
    """The lines of a gauge, by the labels of each value; none where no value is known."""
    known = [(labels, value) for labels, value in values if value is not None]
    if known:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
    for labels, value in known:
        inner = ",".join(f'{label}="{_escaped(of_it)}"' for label, of_it in labels.items())
        yield f"{name}{inner and f'{{{inner}}}'} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return f"{value:.0f}" if float(value).is_integer() else repr(float(value))
