"""A process that tests what a training has learnt, so that the training's own process stays as it was.

A test frees larger blocks than a step. In the process that trains, the first test would raise glibc's mmap threshold
for good (mallopt(3)): from then on the baseline, too, would keep its memory. On one machine a step of the CNN took
4,157 page faults before such a test, and none after it.

The tester is forked before torch is there, and prepares the same training. It is stopped (SIGSTOP) but while it tests,
so that not even threads that spin as they wait take time from the steps.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, NoReturn, cast

from envkit.worker.child import die_with
from envkit.worker.errors import WorkerError
from envkit.worker.messages import LostTester

if TYPE_CHECKING:
    from torch import Tensor

    from envkit.worker.modes import Network
    from envkit.worker.workloads import Training


class Tester:
    """A process that prepares itself meanwhile; ``wait`` for it before anything is timed, and ``end`` it."""

    def __init__(self, prepare: Callable[[], Training]) -> None:
        """``prepare`` makes the same training that is to be tested."""
        weights, self._weights = os.pipe()
        answers, answer = os.pipe()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._weights)
            os.close(answers)
            _serve(prepare, weights, answer, parent)
        os.close(weights)
        os.close(answer)
        self._answers = os.fdopen(answers, "rb")

    def wait(self) -> None:
        """Until it is ready."""
        self._answer()
        os.kill(self._pid, signal.SIGSTOP)

    def quality(self, training: Training) -> dict[str, object] | None:
        """Return the figures of a test of ``training``, with its weights as they are now."""
        os.kill(self._pid, signal.SIGCONT)
        try:
            self._send(training)
        except BrokenPipeError:
            raise WorkerError(LostTester()) from None
        figures = self._answer()
        os.kill(self._pid, signal.SIGSTOP)
        return figures

    def _send(self, training: Training) -> None:
        """The weights, as they are now."""
        for tensor in _state(training):
            # the tensor's own memory: a copy would be one more block to free
            unsent = tensor.contiguous().view(-1).numpy().data.cast("B")
            while unsent:
                unsent = unsent[os.write(self._weights, unsent) :]

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._weights)
        self._answers.close()

    def _answer(self) -> dict[str, object] | None:
        line = self._answers.readline()
        if not line:
            raise WorkerError(LostTester())
        figures: dict[str, object] | None = json.loads(line)
        return figures


def _serve(prepare: Callable[[], Training], weights: int, answer: int, parent: int) -> NoReturn:
    """Be the tester: say that it is ready, and then the figures of each test."""
    ready = False
    try:
        if die_with(parent, signal.SIGKILL):
            training = prepare()
            ready = True
            state = _state(training)
            with os.fdopen(weights, "rb") as received, os.fdopen(answer, "w", buffering=1) as answers:
                answers.write("null\n")
                while all(_received(received, tensor) for tensor in state):
                    answers.write(json.dumps(training.quality()) + "\n")
    except BaseException:
        if ready:  # else the training itself ends by the same, and says so
            traceback.print_exc()
    finally:
        os._exit(1)  # nothing of what was forked is this process's to end


def _state(training: Training) -> list[Tensor]:
    """Return all tensors of a model: a training that has a tester trains a ``Network``."""
    network = cast("Network", training.network)
    return list(network.model.state_dict().values())


def _received(weights: BinaryIO, tensor: Tensor) -> bool:
    """Fill ``tensor`` with what is sent; False where nobody sends any more."""
    import torch

    size = tensor.numel() * tensor.element_size()
    sent = weights.read(size)
    if len(sent) < size:
        return False
    tensor.copy_(torch.frombuffer(bytearray(sent), dtype=tensor.dtype).view(tensor.shape))
    return True
