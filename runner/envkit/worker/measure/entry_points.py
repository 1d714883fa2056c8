"""The functions that a training step calls from one phase to the next, how to listen to them, and a clock for phases.

A workload's files say nothing of phases, and stay as they are: a digest of them says which records can be compared. So
it is what they call that is replaced from outside, while a block of code runs and no longer: functions that PyTorch
documents, and those of ``Network``. Nothing inside of them is touched, so a network that torch.compile has compiled in
steps before stays compiled.
"""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from envkit.worker.messages.captions import PHASE_NAMES
from envkit.worker.modes import Network

if TYPE_CHECKING:
    from typing import ParamSpec

    from envkit.worker.accelerator import Clock

    Arguments = ParamSpec("Arguments")

INPUT, COPY, FORWARD, LOSS, BACKWARD, OPTIMIZER = PHASES = PHASE_NAMES
# What is no phase.
OTHER = "other"
Result = TypeVar("Result")
Loss = TypeVar("Loss")


class Listener(Protocol):
    """Hears of phases, on the thread that trains."""

    def begin(self, phase: str) -> bool:
        """Take note that a phase begins. Return False to ignore it; ``end`` is then not called for it."""

    def end(self) -> None:
        """The phase that began last has ended."""


def entry_points() -> list[tuple[object, str, str]]:
    """Return the owner of each function, its name there, and the phase that lasts while it is called."""
    import torch

    functional = torch.nn.functional
    return [
        (torch.Tensor, "__getitem__", INPUT),  # how a batch is taken out of data in memory
        (Network, "laid_out", INPUT),
        (Network, "placed", COPY),
        (Network, "__call__", FORWARD),
        (functional, "interpolate", FORWARD),  # which makes segmentation's scores as large as its pictures
        (functional, "cross_entropy", LOSS),
        (torch.nn.CrossEntropyLoss, "__call__", LOSS),
        (torch.Tensor, "item", LOSS),  # how its value is read, for which a GPU is waited for
        (torch.Tensor, "backward", BACKWARD),
        (torch.optim.Optimizer, "zero_grad", OPTIMIZER),
        (torch.optim.Adam, "step", OPTIMIZER),
        (torch.optim.SGD, "step", OPTIMIZER),
    ]


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report each phase of the training to ``listener`` meanwhile."""
    with contextlib.ExitStack() as replacements:
        for owner, name, phase in entry_points():
            replacements.enter_context(replaced(owner, name, reported(getattr(owner, name), phase, listener)))
        yield


def reported(function: Callable[Arguments, Result], phase: str, listener: Listener) -> Callable[Arguments, Result]:
    """Return ``function`` so that its calls are the ``phase`` which ``listener`` hears of."""

    @functools.wraps(function)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        if not listener.begin(phase):
            return function(*arguments, **options)
        try:
            return function(*arguments, **options)
        finally:
            listener.end()

    return call


@contextlib.contextmanager
def replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """Have ``owner``, a class or a module, hold ``value`` under ``name`` meanwhile."""
    inherited = name not in vars(owner)
    before = None if inherited else vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


class Recorder:
    """Takes the time of phases by a clock that is marked where one ends and another begins: they add up to the whole.

    One that begins within another is a part of that, but for ``inner`` ones, whose time is taken from the other's.
    """

    def __init__(self, clock: Callable[[], Clock], inner: Collection[str] = ()) -> None:
        """``clock`` makes a new one, as one is read once."""
        self._new_clock, self._inner = clock, inner
        self._open: list[str] = []
        self._start_anew()

    def begin(self, phase: str) -> bool:
        """As that of ``Listener``."""
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
