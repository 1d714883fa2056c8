"""Workers that are started at the same time and train one after the other.

To start one takes longer than a short sample: most of it is importing torch, which several can do at once on several
CPUs. Each then waits (``runner.worker.turn``) until it alone may train.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.engines import owner
from runner.engines.base import Engine, Outcome, Task, Worker
from runner.engines.process import timed_out

POLL_S = 0.05
PREFIX = "envkit-turns"


@dataclass
class Waiting:
    """A worker that waits for its turn, or has ended before it could."""

    worker: Worker
    task: Task
    began: float  # by time.monotonic
    first: bool
    door: int | None = None  # the FIFO's file descriptor, to write to; None where nothing reads there
    late: bool = False
    over: bool = False  # nothing of it is left

    def train(self) -> Outcome:
        """Give it its turn, wait until it has ended, and return how.

        The start of all counts as the first one's time, so that the sum is what all took.
        """
        waited = 0.0 if self.first else time.monotonic() - self.began
        if self.late:
            self.worker.end()
            return Outcome("", "", time.monotonic() - self.began, timed_out(self.task.timeout_s))
        if self.door is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended: how it did is said below
                os.write(self.door, b"1")
        try:
            outcome = self.worker.wait()
            return replace(outcome, seconds=max(0.0, outcome.seconds - waited))
        finally:
            self.close()
            self.worker.end()
            self.over = True

    def close(self) -> None:
        if self.door is not None:
            os.close(self.door)
            self.door = None


@contextlib.contextmanager
def together(starts: Sequence[tuple[Engine, Task]]) -> Iterator[list[Waiting]]:
    """Start all of these, and wait until each is ready; none of them runs any more when the context is left."""
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}-{os.getpid()}-{owner.started(os.getpid())}-"))
    waiting: list[Waiting] = []
    try:
        folder.chmod(0o755)  # a container's user is another one
        for number, (engine, task) in enumerate(starts):
            turn = folder / str(number)
            os.mkfifo(turn)
            turn.chmod(0o644)
            ahead = replace(task, arguments=(*task.arguments, "--turn", str(turn)), turn=str(turn))
            waiting.append(Waiting(engine.start(ahead), ahead, time.monotonic(), first=number == 0))
        begin = time.monotonic()
        for one in waiting:
            one.door, one.late = _door(one, begin)
        yield waiting
    finally:
        for one in waiting:
            one.close()
            if not one.over:
                one.worker.end()
        shutil.rmtree(folder, ignore_errors=True)


def _door(one: Waiting, begin: float) -> tuple[int | None, bool]:
    """The FIFO that the worker reads, once it does; and whether it was too late for that."""
    while not one.worker.has_ended():
        try:
            return os.open(one.task.turn or "", os.O_WRONLY | os.O_NONBLOCK), False
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads yet
                raise
        if time.monotonic() - begin > one.task.timeout_s:
            return None, True
        time.sleep(POLL_S)
    return None, False


def remove_leftovers() -> None:
    """Remove the FIFOs of runners that are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}-*"):
        pid, started = folder.name.removeprefix(f"{PREFIX}-").split("-")[:2]
        if owner.started(int(pid)) != started and folder.stat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)
