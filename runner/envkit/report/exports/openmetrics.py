"""OpenMetrics text (version 1.0): results as gauges, for monitoring systems.

Every value has the time of its run, which a system needs to take in what is past (``promtool tsdb create-blocks-from
openmetrics``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from envkit.common.printable import encoded
from envkit.report.exports.rows import Row
from envkit.report.messages.headings import GAUGES

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


def render(rows: Sequence[Row]) -> bytes:
    """A gauge has a value for each row (a run's arm) where there is one."""
    return encoded("".join(f"{line}\n" for line in _lines(rows)))


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


def _number(value: object) -> str:
    assert isinstance(value, int | float), "gauges are numbers, yes or no"
    number = float(value)
    if math.isfinite(number):
        return f"{number:.0f}" if number.is_integer() else repr(number)
    return "NaN" if math.isnan(number) else ("+Inf" if number > 0 else "-Inf")
