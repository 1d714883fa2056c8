"""OpenMetrics text (version 1.0): results as gauges, for monitoring systems.

Every value has the time of its run, which a system needs to take in what is past (``promtool tsdb create-blocks-from
openmetrics``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from envkit.report.exports.rows import Row

LABELS = (
    "run",
    "arm",
    "profile",
    "reference",
    "engine",
    "workload",
    "modes",
    "ranks",
    "scaling",
    "instances",
    "cpu_model",
)
# Of each gauge: its name, the unit that the name ends in, the row's column, and what it is.
GAUGES = (
    (
        "envkit_speedup_ratio", "ratio", "ratio",
        "Time of the reference for an item over that of this arm: above 1 it is faster.",
    ),
    ("envkit_speedup_low_ratio", "ratio", "low", "Lower end of the interval of the speedup."),
    ("envkit_speedup_high_ratio", "ratio", "high", "Upper end of the interval of the speedup."),
    ("envkit_step_seconds", "seconds", "step_s", "Time of a training step, the median over samples."),
    (
        "envkit_communication_ratio", "ratio", "communication_share",
        "Share of a step in which one of several ranks communicates or waits, under the profiler.",
    ),
    ("envkit_samples", "", "samples", "Samples that were measured, each a fresh process."),
    ("envkit_in_effect", "", "in_effect", "1 if every worker observed what the profile expects, or else 0."),
)  # fmt: skip


def render(rows: Sequence[Row]) -> bytes:
    """A gauge has a value for each row (a run's arm) where there is one."""
    return "".join(f"{line}\n" for line in _lines(rows)).encode()


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for name, unit, column, text in GAUGES:
        yield f"# TYPE {name} gauge"
        if unit:
            yield f"# UNIT {name} {unit}"
        yield f"# HELP {name} {_escaped(text)}"
        for row in rows:
            if row[column] is not None:
                labels = ",".join(f'{label}="{_escaped(str(row[label]))}"' for label in LABELS)
                yield f"{name}{{{labels}}} {_number(row[column])} {row['time']:.3f}"
    yield "# EOF"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: Any) -> str:
    number = float(value)
    if math.isfinite(number):
        return f"{number:.0f}" if number.is_integer() else repr(number)
    return "NaN" if math.isnan(number) else ("+Inf" if number > 0 else "-Inf")
