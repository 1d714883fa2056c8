"""How a node's part of a job went: its record, and a file beside it for refusals, of which no record tells."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.bench import record
from envkit.bench.decide import ENDED, NOT_IN_EFFECT
from envkit.bench.problems import restored
from envkit.common import atomic, codec, documents, files
from envkit.messages import Message

NAME = "node.json"
LOG = "log.txt"
# More than a record's last line has, where it says how the run ended.
TAIL_BYTES = 4096


@dataclass(frozen=True)
class Outcome:
    """Times are in seconds since 1970, by the node's clock."""

    job: str
    began: float
    ended: float | None = None
    status: int | None = None  # the exit status of `envkit bench`; None while it runs, or if it was killed
    problem: Message | None = None
    nodes: str = ""  # those of the job that the run began in, in Slurm's short form
    searched: bool = False  # of a tuning: its search is done, and it waits for the others to confirm

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain data."""
        return {**asdict(self), "problem": self.problem and self.problem.to_json()}

    def write(self, place: Path) -> None:
        atomic.write(place / NAME, json.dumps(self.to_json()).encode(), private=True)


def begun(folder: Path) -> list[str]:
    """The nodes that have begun in a submission's ``folder`` at any time. Raises OSError."""
    return [path.name for path in folder.iterdir() if (path / NAME).exists()]


def read(place: Path) -> Outcome | None:
    """None where the node has not begun."""
    try:
        fields = documents.parse(files.read(place / NAME))
        problem = fields.get("problem")
        return codec.checked(Outcome(**{**fields, "problem": None if problem is None else restored(problem)}))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def ended(place: Path) -> str | None:
    """Why that run came to its end, or None if it did not: only its last line is looked at."""
    try:
        with files.opened(place / record.FILE_NAME) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            *_, last, _ = file.read().split(b"\n")
        event = documents.parse(last)
        reason = str(event["reason"]) if event["event"] == "end" else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return reason if reason in (*ENDED, NOT_IN_EFFECT) else None


def is_settled(place: Path) -> bool:
    """Return whether going on with that run would add nothing."""
    return ended(place) is not None
