"""Commands to repeat a run, and to check that a report is of an unchanged record."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.record import FILE_NAME, Event
from envkit.report.messages import context as messages
from envkit.report.messages.lines import Details
from envkit.report.parts import Row

# Where a redacted record's first event has the digest of the record itself.
RECORD_DIGEST = "record_digest"


def digest(folder: Path, events: Sequence[Event] = ()) -> str:
    """Return the SHA-256 of the record in ``folder``, as ``sha256sum`` prints it; ``events`` may have it."""
    if events and RECORD_DIGEST in events[0]:
        return str(events[0][RECORD_DIGEST])
    return record.digest(folder)


def started_with(events: Sequence[Event]) -> str:
    """Return the command that began the run, as one types it."""
    began, *arguments = events[0]["command"]
    script = Path(began)
    own = ["python", "-m", f"benchmarks.{script.stem}"] if script.parent.name == "benchmarks" else ["envkit"]
    return shlex.join([*own, *arguments])


def ended(result: Result) -> Row:
    """Return why the run ended."""
    return Row("ended", result.ended or messages.NOT_YET_ENDED)


def rows(folder: Path, events: Sequence[Event], result: Result) -> list[Row]:
    """Return commands, seed, versions and digests; the engines' versions are in ``envkit.report.execution_context``."""
    run = events[0]
    found = [
        Row("measured", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run["time"]))),
        ended(result),
        Row("command", started_with(events)),
        *([Row("seed", messages.Seed(seed))] if (seed := result.study.seed) is not None else []),
        Row("kit version", messages.KitVersion(run["kit_version"], run["schema"])),
    ]
    if (first := next((event for event in events if event["event"] == "sample"), None)) is not None:
        found += [Row(name.replace("_", " "), messages.FileDigest(value)) for name, value in first["digests"].items()]
    return [
        *found,
        Row("record", messages.FileDigest(digest(folder, events), str(folder / FILE_NAME))),
        Row("terminal", details(str(folder))),
    ]


def details(folder: str) -> Details:
    """Return the command that prints all of a report."""
    return Details(("envkit", "report", folder, "--details"))
