"""Workers that are started at the same time and train one after the other.

To start one takes longer than a short sample: most of it is importing torch, which several can do at once on several
CPUs. Each then waits (``envkit.worker.measure.turn``) until it alone may train.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from envkit.engines.base import Engine, Launch, Outcome, Worker
from envkit.engines.messages import TimedOut

POLL_S = 0.05


@dataclass
class Turn:
    """Since when time counts as the next worker's (by time.monotonic): since the one before has ended."""

    since: float


@dataclass
class Waiting:
    """A worker that waits for its turn, or has ended before it could."""

    worker: Worker
    launch: Launch
    turn: Turn
    began: float  # right before it was started, by time.monotonic
    ready: bool = False
    late: bool = False
    over: bool = False  # nothing of it is left

    def get_ready(self, begin: float) -> None:
        """Wait until it is ready; end it where it is not in the time that it has since ``begin``."""
        while not self.worker.has_ended():
            if self.worker.is_ready(POLL_S):
                self.ready = True
                return
            if time.monotonic() - begin > self.launch.timeout_s:
                self.late = True
                self.end()  # it would disturb the others
                return

    def train(self) -> Outcome:
        """Give it its turn, wait until it has ended, and return how.

        The start of all counts as the first one's time, so that the sum is what all took.
        """
        waited = max(0.0, self.turn.since - self.began)
        if self.late:
            took = time.monotonic() - self.began - waited
            self.turn.since = time.monotonic()
            return Outcome("", "", took, TimedOut(self.launch.timeout_s))
        try:
            if self.ready:
                self.worker.give_turn()
            outcome = self.worker.wait()
        finally:
            self.end()
        self.turn.since = time.monotonic()
        return replace(outcome, seconds=max(0.0, outcome.seconds - waited))

    def end(self) -> None:
        if not self.over:
            self.over = True
            self.worker.end()


@contextlib.contextmanager
def together(starts: Sequence[tuple[Engine, Launch]]) -> Iterator[list[Waiting]]:
    """Start all of these, and wait until each is ready; none of them runs any more when the context is left."""
    with contextlib.ExitStack() as stack:
        turn = Turn(time.monotonic())
        waiting: list[Waiting] = []
        for engine, launch in starts:
            ahead = replace(launch, ahead=True)
            began = time.monotonic()
            waiting.append(Waiting(engine.start(ahead), ahead, turn, began))
            stack.callback(waiting[-1].end)
        begin = time.monotonic()
        for worker in waiting:
            worker.get_ready(begin)
        yield waiting
