"""The worker's reply: one JSON document on its stdout, which only this module parses.

The document is what was measured or observed, or has the ``problem`` in its place. On several nodes, each may print a
line with a problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from envkit.common import documents


@dataclass(frozen=True)
class WorkerReply:
    """A document that a worker printed."""

    document: dict[str, object]

    @property
    def problem(self) -> object:
        """The message that the worker reports as JSON, or None."""
        return self.document.get("problem")

    @property
    def order(self) -> tuple[float, ...]:
        """Sort key that puts the cause of a lost rank before its consequences (``envkit.worker.ranks``)."""
        try:
            order = self.document["order"]
            return tuple(map(float, order)) if isinstance(order, list) else (math.inf,)
        except (KeyError, TypeError, ValueError, OverflowError):
            return (math.inf,)

    @property
    def log(self) -> str:
        """The tail of the failed rank's log, or nothing."""
        return str(self.document.get("log", ""))


def parse(stdout: str) -> WorkerReply | None:
    """Return the reply that ``stdout`` holds; None if it is not JSON. A value that is no object has no keys."""
    try:
        document = documents.parse(stdout.encode())
    except ValueError:
        return None
    return WorkerReply(document if isinstance(document, dict) else {})


def of_lines(stdout: str) -> Iterator[tuple[str, WorkerReply]]:
    """Yield each line that is a reply, with the reply: several nodes print one each."""
    for line in stdout.splitlines():
        if (reply := parse(line)) is not None:
            yield line, reply
