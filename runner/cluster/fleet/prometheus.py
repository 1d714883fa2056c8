"""What was found of a fleet in Prometheus' text format (version 0.0.4), as node_exporter's textfile collector takes it.

That collector refuses values with a time of their own, so there are none: when nodes were measured is a value too.
Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from runner.cluster.fleet import sentences
from runner.cluster.fleet.findings import Fleet, Kind, NodeVerdict, Result

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
OF_KINDS: tuple[tuple[str, str, Callable[[Kind], float]], ...] = (
    ("envkit_fleet_step_seconds", "Time per step of the middle node.", lambda kind: kind.spread.median_s),
    ("envkit_fleet_spread_ratio", "Standard deviation between healthy nodes.", lambda kind: kind.spread.between),
    ("envkit_fleet_allowance_ratio", "More time that a node may take.", lambda kind: kind.spread.allowance),
)


def render(fleet: Fleet) -> bytes:
    """One value per node or kind for each gauge; a value that is not known is left out."""
    return "".join(f"{line}\n" for line in _lines(fleet)).encode()


def _lines(fleet: Fleet) -> Iterator[str]:
    counts = {**sentences.verdict_counts(fleet), "left out": len(fleet.left_out)}
    by_verdict = [({"verdict": verdict.replace(" ", "_")}, count) for verdict, count in counts.items()]
    yield from _gauge("envkit_fleet_nodes", "Nodes by what was found of them.", by_verdict)
    for name, text, of_kind in OF_KINDS:
        yield from _gauge(name, text, [({"kind": kind.name}, of_kind(kind)) for kind in fleet.kinds])
    labels = [{"node": one.node.name, "profile": one.node.profile, "kind": one.node.kind} for one in fleet.results]
    for name, text, of_node in OF_NODES:
        yield from _gauge(name, text, zip(labels, map(of_node, fleet.results), strict=True))


def _gauge(name: str, text: str, values: Iterable[tuple[dict[str, str], float | None]]) -> Iterator[str]:
    """The lines of a gauge, by the labels of each value; none where no value is known."""
    known = [(labels, value) for labels, value in values if value is not None]
    if known:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} gauge"
    for labels, value in known:
        inner = ",".join(f'{label}="{_escaped(of_it)}"' for label, of_it in labels.items())
        yield f"{name}{{{inner}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return f"{value:.0f}" if float(value).is_integer() else repr(float(value))
