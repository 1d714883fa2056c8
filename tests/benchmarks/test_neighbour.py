"""The neighbour comes and goes as it should, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import neighbour
from tests.processes import gone, until


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_for_children(process: int) -> list[int]:
    """Its processes, once there is one for each CPU."""
    until(lambda: len(children(process)) >= len(os.sched_getaffinity(0)))
    return children(process)


def test_spins_and_rests_in_turn_for_about_a_third_of_the_time():
    periods = list(neighbour.periods("seed", 100_000))
    begins = [0.0, *(until for _, until in periods)]
    busy = sum(until - begin for (spins, until), begin in zip(periods, begins, strict=False) if spins)
    assert busy / 100_000 == pytest.approx(1 / 3, abs=0.02)
    assert all(first[0] != second[0] for first, second in pairwise(periods))
    assert periods[-1][1] == 100_000


def test_every_cpu_follows_the_same_times_and_another_seed_has_others():
    assert list(neighbour.periods("a", 60)) == list(neighbour.periods("a", 60))
    assert list(neighbour.periods("a", 60)) != list(neighbour.periods("b", 60))


def test_runs_on_every_cpu_and_ends_with_the_block():
    with neighbour.running("seed", 60) as process:
        spinning = wait_for_children(process)
    until(lambda: all(map(gone, spinning)))
    assert gone(process)


def test_ends_when_whoever_started_it_is_killed():
    code = (
        "from benchmarks import neighbour\nimport time\n"
        "with neighbour.running('seed', 60) as process:\n    print(process, flush=True)\n    time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as owner:
        process = int(owner.stdout.readline())
        spinning = wait_for_children(process)
        owner.kill()
    until(lambda: all(map(gone, [process, *spinning])))


@pytest.mark.parametrize("rests", [(), ("--never-rests",)])
def test_ends_by_itself(rests):
    arguments = [sys.executable, "-m", "benchmarks.neighbour", "--seconds", "0.1", *rests]
    assert subprocess.run(arguments, check=False).returncode == 0
