"""What was found of a fleet in Prometheus' text format (version 0.0.4), as node_exporter's textfile collector takes it.

That collector refuses values with a time of their own, so there are none: when nodes were measured is a value too.
Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runner.cluster.fleet import sentences
from runner.cluster.fleet.findings import Fleet, Kind, NodeVerdict, Result


@dataclass(frozen=True)
class Gauge:
    name: str
    text: str
    value: Callable[[Result], float | None]


OF_NODES = (
    Gauge("envkit_node_time_ratio", "Time per step over that of the middle node of its kind.", lambda one: one.ratio),
    Gauge("envkit_node_time_low_ratio", "Lower end of the interval of the time ratio.", lambda one: one.low),
    Gauge("envkit_node_time_high_ratio", "Upper end of the interval of the time ratio.", lambda one: one.high),
    Gauge("envkit_node_slow", "1 if the node is slow, or else 0.", lambda one: float(one.verdict == NodeVerdict.SLOW)),
    Gauge("envkit_node_samples", "Samples that were measured.", lambda one: float(len(one.node.step_s))),
    Gauge(
        "envkit_node_interference_samples",
        "Samples that were disturbed from outside.",
        lambda one: float(one.node.samples_with_interference),
    ),
    Gauge(
        "envkit_node_reference_kernel_ratio",
        "Time of a fixed piece of work over the median of the node's kind.",
        lambda one: one.reference_kernel,
    ),
    Gauge(
        "envkit_node_measured_timestamp_seconds",
        "When the measurement began, by the node's own clock, in seconds since 1970.",
        lambda one: one.node.began,
    ),
)
OF_KINDS: tuple[tuple[str, str, Callable[[Kind], float]], ...] = (
    ("envkit_fleet_step_seconds", "Time per step of the middle node.", lambda kind: kind.spread.median_s),
    ("envkit_fleet_spread_ratio", "Standard deviation between healthy nodes.", lambda kind: kind.spread.between),
    ("envkit_fleet_allowance_ratio", "More time that a node may take.", lambda kind: kind.spread.allowance),
)


def render(fleet: Fleet) -> bytes:
    """One value per node or kind for each gauge; a value that is not known is left out."""
    return "".join(f"{line}\n" for line in _lines(fleet)).encode()


def _lines(fleet: Fleet) -> Iterator[str]:
    yield from _head("envkit_fleet_nodes", "Nodes by what was found of them.")
    counts = {**sentences.verdict_counts(fleet), "left out": len(fleet.left_out)}
    for verdict, count in counts.items():
        yield _line("envkit_fleet_nodes", {"verdict": verdict.replace(" ", "_")}, count)
    for name, text, of_kind in OF_KINDS:
        yield from _head(name, text)
        for kind in fleet.kinds:
            yield _line(name, {"kind": kind.name}, of_kind(kind))
    for gauge in OF_NODES:
        values = [(one, value) for one in fleet.results if (value := gauge.value(one)) is not None]
        yield from _of_nodes(gauge, values)


def _of_nodes(gauge: Gauge, values: Sequence[tuple[Result, float]]) -> Iterator[str]:
    if values:
        yield from _head(gauge.name, gauge.text)
    for one, value in values:
        yield _line(gauge.name, {"node": one.node.name, "profile": one.node.profile, "kind": one.node.kind}, value)


def _head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inner}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return f"{value:.0f}" if float(value).is_integer() else repr(float(value))
