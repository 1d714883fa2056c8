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
from typing import Any, BinaryIO, NoReturn

from envkit.worker.child import die_with
from envkit.worker.errors import WorkerError
from envkit.worker.messages import LostTester


class Tester:
    """One that prepares itself meanwhile; ``wait`` for it before anything is timed, and ``end`` it."""

    def __init__(self, prepare: Callable[[], Any]) -> None:
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

    def quality(self, training: Any) -> dict[str, Any] | None:
        """Return what a test of ``training`` finds, with its weights as they are now."""
        os.kill(self._pid, signal.SIGCONT)
        try:
            self._send(training)
        except BrokenPipeError:
            raise WorkerError(LostTester()) from None
        found: dict[str, Any] | None = self._answer()
        os.kill(self._pid, signal.SIGSTOP)
        return found

    def _send(self, training: Any) -> None:
        """The weights, as they are now."""
        for tensor in training.network.model.state_dict().values():
            # the tensor's own memory: a copy would be one more block to free
            left = memoryview(tensor.contiguous().view(-1).numpy()).cast("B")
            while left:
                left = left[os.write(self._weights, left) :]

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._weights)
        self._answers.close()

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise WorkerError(LostTester())
        return json.loads(line)


def _serve(prepare: Callable[[], Any], weights: int, answer: int, parent: int) -> NoReturn:
    """Return what the tester does: say that it is ready, and then what each test finds."""
    ready = False
    try:
        if die_with(parent, signal.SIGKILL):
            training = prepare()
            ready = True
            own = list(training.network.model.state_dict().values())
            with os.fdopen(weights, "rb") as received, os.fdopen(answer, "w", buffering=1) as answers:
                answers.write("null\n")
                while all(_received(received, tensor) for tensor in own):
                    answers.write(json.dumps(training.quality()) + "\n")
    except BaseException:
        if ready:  # else the training itself ends by the same, and says so
            traceback.print_exc()
    finally:
        os._exit(1)  # nothing of what was forked is this process's to end


def _received(weights: BinaryIO, tensor: Any) -> bool:
    """Fill ``tensor`` with what is sent; False where nobody sends any more."""
    import torch

    size = tensor.numel() * tensor.element_size()
    sent = weights.read(size)
    if len(sent) < size:
        return False
    tensor.copy_(torch.frombuffer(bytearray(sent), dtype=tensor.dtype).view(tensor.shape))
    return True
