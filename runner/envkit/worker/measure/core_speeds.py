"""The program that measures how fast CPUs compute alone and at once. Its argument lists the CPUs, as ``0,1``.

Each CPU has a process of one thread, which multiplies small matrices that fit into a core's own cache. The FMA
instructions fill a core's units: two hardware threads of one core get half of them each. Other work shows a shared core
less: SHA-256 instructions wait for each other, as does a chase of pointers, and leave room for a second thread. The kit
depends on numpy, so that each machine that runs it has the product.

Time is divided into slots. All CPUs compute in the first slot of a round. Two slots follow for each bit of a CPU's
position in the list. The positions with the bit compute in one, those without it in the other. Two positions differ in
a bit, so each CPU also computes without the other. The slots that slow a CPU down name the CPU that shares its core.
So many CPUs need few slots: 3 for 2 CPUs, 14 for 64. Rounds begin with another slot each time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from envkit.worker.measure.machine_load import Counters, read

# In all rounds together. A Python that imports numpy starts within the rest of two seconds.
BUDGET_S = 1.2
# No multiple of the kernel's tick (1, 2.5, 4 or 10 ms): its sampled CPU times then have no common error.
SLOT_S = 0.0413
FEWEST_ROUNDS, MOST_ROUNDS = 3, 9
# Of a slot: the first part lets the CPU reach its speed, and the last one lets a process that is late end in time.
WARM_UP, END = 0.25, 0.96
# Three float32 matrices are 300 KiB, which most second-level caches hold. On Zen 5 one thread reaches 98% of its speed
# with large matrices. With a side of 128 it reaches 93%, and idle units are what a second thread could use.
MATRIX_SIDE = 160
# Of each process, to be started and pinned.
START_S, START_EACH_S = 0.05, 0.002


class Window(NamedTuple):
    """A CPU in one slot: products per second, and which share of the time its process had the CPU."""

    speed: float
    share: float


def slots(cpus: int) -> list[tuple[int, ...]]:
    """Return the positions that compute in each slot of a round: all, then those with and those without each bit.

    The first of more than two then computes alone: four threads of a core would have company in all other slots.
    """
    everyone = tuple(range(cpus))
    halves = [
        tuple(position for position in everyone if position >> bit & 1 == value)
        for bit in range((cpus - 1).bit_length())
        for value in (1, 0)
    ]
    return [everyone, *halves, *([(0,)] if cpus > 2 else [])]


def schedule(cpus: int) -> tuple[list[int], float]:
    """Return the numbers of the slots in the order in which they come, and how many seconds each takes."""
    in_round = len(slots(cpus))
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, int(BUDGET_S / (in_round * SLOT_S))))
    order = [(start + slot) % in_round for start in range(rounds) for slot in range(in_round)]
    return order, min(SLOT_S, BUDGET_S / len(order))


def main() -> None:
    """Measure the CPUs of the first argument. Print each one's windows, slot by slot, and what else the CPUs did."""
    cpus = [int(cpu) for cpu in sys.argv[1].split(",")]
    import numpy  # noqa: F401 - once for all processes, and before the counters are read

    before, own_before = read(), os.times()
    windows = _measure(cpus)
    own_after, after = os.times(), read()
    print(json.dumps({"slots": schedule(len(cpus))[0], "windows": windows, **_usage(cpus, before, after),
                      "user_s": sum(own_after[:4]) - sum(own_before[:4])}))  # fmt: skip


def _usage(cpus: Sequence[int], before: Counters, after: Counters) -> dict[str, object]:
    """Return what the CPUs did between two readings, by all programs, in CPU seconds; None if the kernel hides it."""
    changes = [(before.cpus[cpu], after.cpus[cpu]) for cpu in {*cpus} if cpu in before.cpus and cpu in after.cpus]
    known = len(changes) == len({*cpus})
    swapped = None
    if before.swapped_bytes is not None and after.swapped_bytes is not None:
        swapped = after.swapped_bytes - before.swapped_bytes
    return {
        "seconds": after.time_s - before.time_s,
        "busy_s": sum(then.programs_s - first.programs_s for first, then in changes) if known else None,
        "steal_s": sum(then.steal_s - first.steal_s for first, then in changes) if known else None,
        "swapped_bytes": swapped,
    }


def _measure(cpus: Sequence[int]) -> list[list[Window | None]]:
    """Return, for each CPU, its window in each slot, None where it did not compute."""
    begin = time.monotonic() + START_S + START_EACH_S * len(cpus)
    ends = []
    for position in range(len(cpus)):
        reading, writing = os.pipe()
        if os.fork() == 0:
            _answer(writing, position, cpus, begin)
        os.close(writing)
        ends.append(reading)
    windows = []
    for reading in ends:
        with os.fdopen(reading, "rb") as pipe:
            windows.append(pipe.read())
    for _ in cpus:
        os.wait()
    if not all(windows):
        sys.exit(1)  # the process has said why
    return [json.loads(answer) for answer in windows]


def _answer(pipe: int, position: int, cpus: Sequence[int], begin: float) -> NoReturn:
    """Compute on one CPU, write its windows to the pipe and end this process."""
    status = 1
    try:
        os.sched_setaffinity(0, {cpus[position]})
        os.write(pipe, json.dumps(_windows(position, len(cpus), begin)).encode())
        status = 0
    except OSError as error:
        print(f"CPU {cpus[position]}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _windows(position: int, cpus: int, begin: float) -> list[Window | None]:
    import numpy

    left: numpy.typing.NDArray[numpy.float32] = numpy.full((MATRIX_SIDE, MATRIX_SIDE), 0.5, dtype=numpy.float32)
    right, product = left.copy(), left.copy()
    computing = slots(cpus)
    order, seconds = schedule(cpus)
    windows: list[Window | None] = []
    for number, slot in enumerate(order):
        if position not in computing[slot]:
            windows.append(None)
            continue
        start = begin + number * seconds
        time.sleep(max(0.0, start - time.monotonic()))
        while (first := time.monotonic()) < start + WARM_UP * seconds:
            numpy.matmul(left, right, out=product)
        used, products = time.process_time(), 0
        while (last := time.monotonic()) < start + END * seconds:
            numpy.matmul(left, right, out=product)
            products += 1
        elapsed = last - first
        # a process that came too late had no part of its window
        windows.append(Window(products / elapsed, (time.process_time() - used) / elapsed) if products else Window(0, 0))
    return windows


if __name__ == "__main__":
    main()
