"""A noisy neighbour: one process per CPU, all of which spin and sleep together for random times, from the same seed.

Times are exponential with the means that are given, so whether it is on says nothing of how long it stays so; or it
never rests. It ends by itself after the given time, and with whoever started it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

ON_S, OFF_S = 2.0, 4.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def periods(seed: str, seconds: float) -> Iterator[tuple[bool, float]]:
    """Whether it spins, and until when (seconds since it began), up to ``seconds``. It begins in a random state."""
    draw = random.Random(seed)
    spins = draw.random() < ON_S / (ON_S + OFF_S)
    until = 0.0
    while until < seconds:
        until = min(seconds, until + draw.expovariate(1 / (ON_S if spins else OFF_S)))
        yield spins, until
        spins = not spins


@contextlib.contextmanager
def running(seed: str, seconds: float, rests: bool = True) -> Iterator[int]:
    """A neighbour for as long as the block runs, and ``seconds`` at most; its process id."""
    arguments = ["--seed", seed, "--seconds", str(seconds), "--parent", str(os.getpid())]
    arguments += [] if rests else ["--never-rests"]
    process = subprocess.Popen([sys.executable, "-I", "-S", str(Path(__file__).resolve()), *arguments])
    try:
        yield process.pid
    finally:
        process.kill()  # its own processes die with it
        process.wait()


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)  # it was gone before we asked to be told


def _follow(times: Iterable[tuple[bool, float]]) -> None:
    begin = time.monotonic()
    for spins, until in times:
        while spins and time.monotonic() - begin < until:
            sum(range(1000))
        time.sleep(max(0.0, begin + until - time.monotonic()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neighbour", description=__doc__)
    parser.add_argument("--seed", default="0", help="of the random times")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it lives (default: 60)")
    parser.add_argument("--never-rests", action="store_true", help="spin all the time")
    parser.add_argument("--parent", type=int, metavar="PID", help="die with this process, which must be the parent")
    arguments = parser.parse_args()
    if arguments.parent:
        _die_with(arguments.parent)
    me = os.getpid()
    children = []
    for _ in os.sched_getaffinity(0):
        child = os.fork()
        if child == 0:
            _die_with(me)
            always = [(True, arguments.seconds)]
            _follow(always if arguments.never_rests else periods(arguments.seed, arguments.seconds))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
