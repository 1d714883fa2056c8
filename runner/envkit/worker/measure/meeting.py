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
from typing import TYPE_CHECKING

from envkit.worker import left
from envkit.worker.errors import WorkerError
from envkit.worker.messages import OthersMissing

if TYPE_CHECKING:
    from typing import TypeGuard

    from envkit.worker.sample import Sample

# A process waits no longer for the others, in seconds.
PATIENCE_S = 600.0
# In the folder: what opens for all at once; and a file for each of them that is ready, is done, or has left a document.
GATE, READY, DONE, DOCUMENT = "gate", "ready", "done", "document"


class Meeting:
    """One process's part in it; ``parties`` processes meet in ``folder``."""

    def __init__(self, folder: Path, parties: int) -> None:
        self._folder, self._last = folder, parties - 1
        self._own_steps: int | None = None

    def begin(self) -> None:
        """Wait until all are here. Raises WorkerError if others don't come."""
        gate = self._folder / GATE
        with contextlib.suppress(FileExistsError):
            os.mkfifo(gate)
        waiting = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
        try:
            if self._sign(READY) == self._last:
                os.close(os.open(gate, os.O_WRONLY))  # all others have it open: a writer that leaves wakes them
                return
            poll = select.poll()
            poll.register(waiting, 0)  # what is always told is that a writer has left
            if not poll.poll(PATIENCE_S * 1000):
                raise WorkerError(OthersMissing(PATIENCE_S))
        finally:
            os.close(waiting)

    def others_train(self, steps: int) -> bool:
        """Return whether another process has timed steps left. Call it when all ``steps`` of this one are over."""
        if self._own_steps is None:
            self._own_steps = steps
            self._sign(DONE)
        return not (self._folder / f"{DONE}-{self._last}").exists()

    def leave(self, document: Mapping[str, object]) -> None:
        """Leave what was measured; ``own_steps`` of its steps are its own, the others kept the machine busy."""
        text = json.dumps({**document, "own_steps": self._own_steps})
        self._sign(DOCUMENT, text)

    def _sign(self, event: str, text: str = "") -> int:
        """Be the next one to whom this happens; returns how many were before."""
        before = 0
        while True:
            try:
                with (self._folder / f"{event}-{before}").open("x") as file:
                    file.write(text)
                return before
            except FileExistsError:
                before += 1


def samples(folder: Path) -> list[Sample]:
    """Return the samples of the processes that met there. Raise WorkerError if a document can't be used."""
    documents = left.read(folder, f"{DOCUMENT}-*", _is_sample)
    if documents.problem:
        raise WorkerError(documents.problem)
    return documents.documents


def _is_sample(document: dict[str, object]) -> TypeGuard[Sample]:
    """The folder is the launcher's, and a document there is one that ``Meeting.leave`` wrote."""
    return True
