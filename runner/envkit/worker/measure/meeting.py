"""Processes that train at the same time: all begin their timed steps together, and none stops before the last is done.

They need not know each other, nor who started them: each is given the same empty folder, and how many they are. While
one waits there, or looks into it, it takes no CPU time to speak of.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envkit.worker.errors import WorkerError
from envkit.worker.measure.turn import PATIENCE_S
from envkit.worker.messages import OthersMissing

# In the folder: what opens for all at once; and a file for each of them that is ready, is done, or has left a document.
DOOR, READY, DONE, DOCUMENT = "door", "ready", "done", "document"


class Meeting:
    """One process's part in it; ``parties`` processes meet in ``folder``."""

    def __init__(self, folder: Path, parties: int) -> None:
        self._folder, self._last = folder, parties - 1
        self._own_steps: int | None = None

    def begin(self) -> None:
        """Wait until all are here. Raises WorkerError if others don't come."""
        door = self._folder / DOOR
        with contextlib.suppress(FileExistsError):
            os.mkfifo(door)
        waiting = os.open(door, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if self._sign(READY) == self._last:
                os.close(os.open(door, os.O_WRONLY))  # all others have it open: a writer that leaves wakes them
                return
            poll = select.poll()
            poll.register(waiting, 0)  # what is always told is that a writer has left
            if not poll.poll(PATIENCE_S * 1000):
                raise WorkerError(OthersMissing(PATIENCE_S))
        finally:
            os.close(waiting)

    def others_train(self, taken: int) -> bool:
        """Whether another one has timed steps to take still; asked when all own ones are ``taken``, and after more."""
        if self._own_steps is None:
            self._own_steps = taken
            self._sign(DONE)
        return not (self._folder / f"{DONE}-{self._last}").exists()

    def leave(self, document: Mapping[str, Any]) -> None:
        """Leave what was measured; ``own_steps`` of its steps are its own, the rest were for the others' sake."""
        text = json.dumps({**document, "own_steps": self._own_steps})
        self._sign(DOCUMENT, text)

    def _sign(self, what: str, text: str = "") -> int:
        """Be the next one to whom this happens; returns how many were before."""
        before = 0
        while True:
            try:
                with (self._folder / f"{what}-{before}").open("x") as file:
                    file.write(text)
                return before
            except FileExistsError:
                before += 1


def documents(folder: Path) -> list[dict[str, Any]]:
    """Return what those that met there have left, in no order. Raises ValueError for what is no JSON."""
    return [json.loads(path.read_text()) for path in folder.glob(f"{DOCUMENT}-*")]
