"""Workers that are started at the same time and train one after the other.

To start one takes longer than a short sample: most of it is importing torch, which several can do at once on several
CPUs. Each then waits (``envkit.worker.measure.turn``) until it alone may train.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from envkit.engines.base import Engine, Outcome, Task, Worker
from envkit.engines.messages import ExitStatus, TimedOut
from envkit.worker import scratch
from envkit.worker.measure.turn import NOT_THERE

POLL_S = 0.05
PREFIX = "envkit-turns"
# How a worker ended that can't see the FIFO where it runs.
UNREACHABLE = ExitStatus(NOT_THERE)


@dataclass
class Lap:
    """Since when time counts as the next worker's (by time.monotonic): since the one before has ended."""

    since: float


@dataclass
class Waiting:
    """A worker that waits for its turn, or has ended before it could."""

    worker: Worker
    task: Task
    lap: Lap
    began: float  # right before it was started, by time.monotonic
    door: int | None = None  # the FIFO's file descriptor, to write to; None where nothing reads there
    late: bool = False
    over: bool = False  # nothing of it is left

    def get_ready(self, begin: float) -> None:
        """Wait until it reads from its FIFO; end it where it does not in the time that it has since ``begin``."""
        while not self.worker.has_ended():
            try:
                self.door = os.open(self.task.turn or "", os.O_WRONLY | os.O_NONBLOCK)
                return
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads yet
                    raise
            if time.monotonic() - begin > self.task.timeout_s:
                self.late = True
                self.end()  # it would disturb the others
                return
            time.sleep(POLL_S)

    def train(self) -> Outcome:
        """Give it its turn, wait until it has ended, and return how.

        The start of all counts as the first one's time, so that the sum is what all took.
        """
        waited = max(0.0, self.lap.since - self.began)
        if self.late:
            took = time.monotonic() - self.began - waited
            self.lap.since = time.monotonic()
            return Outcome("", "", took, TimedOut(self.task.timeout_s))
        if self.door is not None:
            with contextlib.suppress(BrokenPipeError):  # it has ended: how it did is said below
                os.write(self.door, b"1")
        try:
            outcome = self.worker.wait()
        finally:
            self.close()
            self.end()
        self.lap.since = time.monotonic()
        return replace(outcome, seconds=max(0.0, outcome.seconds - waited))

    def close(self) -> None:
        if self.door is not None:
            os.close(self.door)
            self.door = None

    def end(self) -> None:
        if not self.over:
            self.over = True
            self.worker.end()


@contextlib.contextmanager
def together(starts: Sequence[tuple[Engine, Task]]) -> Iterator[list[Waiting]]:
    """Start all of these, and wait until each is ready; none of them runs any more when the context is left."""
    with scratch.folder(PREFIX) as folder, contextlib.ExitStack() as left:
        folder.chmod(0o755)  # a container's user is another one
        lap = Lap(time.monotonic())
        waiting: list[Waiting] = []
        for number, (engine, task) in enumerate(starts):
            turn = folder / str(number)
            os.mkfifo(turn)
            turn.chmod(0o644)
            ahead = replace(task, arguments=(*task.arguments, "--turn", str(turn)), turn=str(turn))
            began = time.monotonic()
            waiting.append(Waiting(engine.start(ahead), ahead, lap, began))
            left.callback(waiting[-1].end)
        begin = time.monotonic()
        for one in waiting:
            left.callback(one.close)  # before any is ended: those that wait then end by themselves
            one.get_ready(begin)
        yield waiting
