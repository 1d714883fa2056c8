"""How a node's part of a job went: its record, and a file beside it for refusals, of which no record tells."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from runner import atomic, record
from runner.errors import InputError
from runner.measure import ENDED, NOT_IN_EFFECT

NAME = "node.json"
LOG = "log.txt"


@dataclass(frozen=True)
class Outcome:
    """``status`` is the exit status of ``runner bench``, None while it runs, or if it was killed. Times are in seconds
    since 1970, by the node's clock. ``problem`` is one line."""

    job: str
    began: float
    ended: float | None = None
    status: int | None = None
    problem: str | None = None

    def write(self, place: Path) -> None:
        atomic.write(place / NAME, json.dumps(asdict(self)).encode())


def read(place: Path) -> Outcome | None:
    """None where the node has not begun."""
    try:
        return Outcome(**json.loads((place / NAME).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def is_begun(place: Path) -> bool:
    """Whether there is the record of a run that can be gone on with."""
    try:
        return b"\n" in (place / record.FILE_NAME).read_bytes()
    except OSError:
        return False


def is_settled(place: Path) -> bool:
    """Whether that run has come to its end: going on with it would add nothing."""
    try:
        events = record.read(place)
    except InputError:
        return False
    last = next((event for event in reversed(events) if event["event"] in ("end", "resume")), {})
    return last.get("reason") in (*ENDED, NOT_IN_EFFECT)
