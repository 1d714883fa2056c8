"""What it takes to do a run again, and to see that a report is of an unchanged record."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis.summary import Summary
from envkit.bench.blocks import first_event
from envkit.bench.record import FILE_NAME, Event
from envkit.report.parts import Row


def digest(folder: Path) -> str:
    """SHA-256 of the record in ``folder``, as ``sha256sum`` prints it."""
    return hashlib.sha256((folder / FILE_NAME).read_bytes()).hexdigest()


def started_with(events: Sequence[Event]) -> str:
    """The command that began the run, as one types it."""
    began, *arguments = events[0]["command"]
    script = Path(began)
    own = ["python", "-m", f"benchmarks.{script.stem}"] if script.parent.name == "benchmarks" else ["envkit"]
    return shlex.join([*own, *arguments])


def ended(summary: Summary) -> Row:
    return Row("ended", summary.ended or "not yet, or killed: continue with --resume")


def rows(folder: Path, events: Sequence[Event], summary: Summary) -> list[Row]:
    """Commands, seed, versions and digests; the engines' versions are in ``envkit.report.execution_context``."""
    run = events[0]
    again = shlex.quote(str(folder))
    found = [
        Row("measured", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run["time"]))),
        ended(summary),
        Row("command", started_with(events)),
        Row("seed", f"{summary.plan.seed}: with --seed {summary.plan.seed} the blocks run in the same order"),
        Row("kit version", f"{run['kit_version']} (record schema {run['schema']})"),
    ]
    if (first := first_event(events, "sample")) is not None:
        found += [Row(name.replace("_", " "), f"SHA-256 {value}") for name, value in first["digests"].items()]
    return [
        *found,
        Row("record", f"{folder / FILE_NAME}, SHA-256 {digest(folder)}"),
        Row("terminal", f"envkit report {again} --details"),
    ]
