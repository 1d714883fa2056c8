"""A command that burns a fixed amount of CPU time in one thread, about 0.1 s, times the variable WORK (1 if not set).

``python burner.py`` is the command. ``python burner.py …/envkit/worker/__main__.py …`` does the same work, but answers
as the kit's worker does, for ``envkit bench --python``: it is that worker, with this
work in the place of the training job. Only the standard library is needed, so ``python -I -S`` starts it fastest.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

STEPS = 20
# Pieces of work in a step; enough for WORK=1.001 to be told from 1.
UNITS = 600
BLOCK = bytes(4096)
# What inspect says in the place of torch's version: there is none, and the runner wants one.
NO_TORCH = "99.0+burner"


def step(work: float) -> None:
    """One step: half of its time in a library's code, half in the interpreter's."""
    for _ in range(round(UNITS * work)):
        hashlib.blake2b(BLOCK).digest()
        total = 0
        for number in range(150):
            total += number


class Network:
    """What says in which modes it was trained."""

    def modes(self) -> dict[str, object]:
        return {}


class Training:
    """The work in the shape of a training job, as in ``envkit.worker.workloads``."""

    images_per_step = 1
    unit = "images"
    steps_per_epoch = STEPS

    def __init__(self, work: float) -> None:
        self._work = work
        self.network = Network()
        self.digests = dict.fromkeys(("code", "data", "initial_weights"), _digest())

    def step(self) -> float:
        step(self._work)
        return 1.0

    def quality(self) -> dict[str, float]:
        return {}


def worker(arguments: list[str], work: float) -> int:
    """Answer as ``python -m envkit.worker``."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runner"))
    from envkit.worker import command_line as real
    from envkit.worker import image, workloads
    from envkit.worker.measure import reference_kernel

    reference_kernel.time_reference_kernel = _reference_kernel
    workloads.WORKLOADS["cnn"] = replace(workloads.WORKLOADS["cnn"], prepare=lambda data, options: Training(work))
    inspect = image.inspect
    image.inspect = lambda *arguments_of: {**inspect(*arguments_of), "packages": {"torch": NO_TORCH}}
    sys.argv = ["envkit.worker", *arguments]
    return real.main()


def _reference_kernel() -> dict[str, object]:
    """The real one takes a second, for samples of several; beside samples of 0.1 s its share is to be as small."""
    begin = time.perf_counter()
    step(1.0)
    return {"seconds": time.perf_counter() - begin, "digest": _digest()}


def _digest() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def main() -> int:
    work = float(os.environ.get("WORK", "1"))
    if sys.argv[1:2] and sys.argv[1].endswith("envkit/worker/__main__.py"):
        return worker(sys.argv[2:], work)
    for _ in range(STEPS):
        step(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
