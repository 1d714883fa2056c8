"""Trains the CNN in ways that the kit's worker does not: in slices, in forked children, or again and again.

Each training prints one JSON line: the seconds of its steps, and the minor page faults of a step. A line on stdin lets
the next thing begin. Used by ``benchmarks.designs``.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

from envkit.worker import compiler
from envkit.worker.modes import USUAL
from envkit.worker.workloads import get

WARM_UP = 5


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def wait() -> bool:
    return bool(sys.stdin.readline())


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def steps(training: Any, count: int) -> list[float]:
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        training.step()
        found.append(round(time.perf_counter() - begin, 6))
    return found


def train(data: str, count: int, slice_steps: int = 0) -> None:
    """One training from the beginning. With ``slice_steps`` it waits for its turn before each of its slices."""
    training = get("cnn").prepare(data, USUAL)
    if slice_steps:
        say(ready=True)
        wait()
    steps(training, WARM_UP)
    before, taken = faults(), []
    while len(taken) < count:
        taken += steps(training, min(slice_steps or count, count - len(taken)))
        if slice_steps and len(taken) < count:
            say(slice=len(taken))
            wait()
    say(step_s=taken, faults=(faults() - before) / count)


def forked(data: str, count: int) -> None:
    """A child for each line on stdin, of a parent that has imported everything and trained nothing."""
    say(ready=True)
    while wait():
        child = os.fork()
        if child == 0:
            train(data, count)
            os._exit(0)
        os.waitpid(child, 0)


def main() -> int:
    import torch  # noqa: F401

    compiler.leave_out()
    how, data, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if how == "forked":
        forked(data, count)
    elif how == "again":
        for _ in range(int(sys.argv[4])):
            train(data, count)
    else:
        train(data, count, int(sys.argv[4]))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
