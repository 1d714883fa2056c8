"""Measure phases by a clock that is marked whenever one phase ends and another begins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import TypeVar

from envkit.worker.accelerator import Clock

# What is no phase.
OTHER = "other"
Loss = TypeVar("Loss")


class Recorder:
    """Takes the time of phases, one at a time, so that they add up to the whole.

    One that begins within another is a part of that, but for ``inner`` ones, whose time is taken from the other's.
    """

    def __init__(self, clock: Callable[[], Clock], inner: Collection[str] = ()) -> None:
        """``clock`` makes a new one, as one is read once."""
        self._new_clock, self._inner = clock, inner
        self._open: list[str] = []
        self._start_anew()

    def begin(self, phase: str) -> bool:
        """As that of ``entry_points.Listener``."""
        if self._open and phase not in self._inner:
            return False
        self._open.append(phase)
        self._mark(phase)
        return True

    def end(self) -> None:
        self._open.pop()
        self._mark(self._open[-1] if self._open else OTHER)

    def step(self, train: Callable[[], Loss]) -> tuple[Loss, dict[str, float]]:
        """Return what ``train`` returns, and how long each of its phases took, in seconds."""
        self._start_anew()
        self._mark(OTHER)
        returned = train()
        self._mark(OTHER)
        return returned, self.take()

    def take(self) -> dict[str, float]:
        """How long each phase took, in seconds, up to the end of the last one; what comes next is counted anew."""
        seconds: dict[str, float] = defaultdict(float)
        times = self._clock.times()
        for phase, begin, end in zip(self._begun, times, times[1:]):
            seconds[phase] += end - begin
        self._start_anew()
        return dict(seconds)

    def _start_anew(self) -> None:
        self._clock = self._new_clock()
        self._begun: list[str] = []  # what began at each mark; at the last one nothing that counts

    def _mark(self, phase: str) -> None:
        self._clock.mark()
        self._begun.append(phase)
