"""Exports of records in formats of other tools. A new format is a function and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.bench.record import Event
from envkit.report.exports import openmetrics, tabular
from envkit.report.exports.rows import Row, results, samples


@dataclass(frozen=True)
class Format:
    """How a run is exported."""

    rows: Callable[[Path, Sequence[Event]], list[Row]]  # what is written of a run's folder and events
    render: Callable[[Sequence[Row]], bytes]
    binary: bool = False  # it is nothing for a terminal
    package: str | None = None  # which an extra brings


FORMATS = {
    "csv": Format(samples, tabular.to_csv),
    "json": Format(samples, tabular.to_json),
    "parquet": Format(samples, tabular.to_parquet, binary=True, package="pyarrow"),
    "openmetrics": Format(results, openmetrics.render),
}
