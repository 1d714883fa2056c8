"""Which programs are at work beside a run."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from envkit.bench.events import Program as OtherProgram
from envkit.bench.messages import BesidePrograms, Disturbed, Program
from envkit.bench.neighbours import Neighbours, Process, busiest, processes
from envkit.bench.run import Run
from envkit.checks.messages import Swapped

from tests.records import arm, run_events

TICKS = os.sysconf("SC_CLK_TCK")


def test_a_process_is_read_with_whatever_its_name_has(tmp_path):
    fields = ["S", "7", *["0"] * 9, "200", "50", *["0"] * 6, "1234", "0"]
    (tmp_path / "42").mkdir()
    (tmp_path / "42/stat").write_text(f"42 (a) b (c) {' '.join(fields)}")
    (tmp_path / "43").mkdir()  # it has ended
    (tmp_path / "44").mkdir()
    (tmp_path / "44/stat").write_text("44 (cut")
    (tmp_path / "self").mkdir()
    assert processes(tmp_path) == {42: Process("a) b (c", 7, 1234, 250)}


def test_those_that_use_most_come_first_and_our_own_are_left_out():
    own = os.getpid()
    before = {
        1: Process("init", 0, 1, 0), 2: Process("spin", 1, 5, 100), 3: Process("gone", 1, 5, 0),
        4: Process("reused", 1, 5, 0), own: Process("envkit", 1, 6, 0), 9: Process("worker", own, 7, 0),
        10: Process("thread", 9, 8, 0), 11: Process("half", 1, 8, 0), 12: Process("idle", 1, 8, 0),
    }  # fmt: skip
    after = {
        **{pid: Process(one.name, one.parent, one.began, one.ticks + 10 * TICKS) for pid, one in before.items()},
        4: Process("reused", 1, 99, 10 * TICKS), 11: Process("half", 1, 8, 5 * TICKS), 12: before[12], 1: before[1],
    }  # fmt: skip
    del after[3]
    assert busiest(before, after, 10.0) == [
        OtherProgram(name="spin", pid=2, cpus=1.0), OtherProgram(name="half", pid=11, cpus=0.5),
    ]  # fmt: skip


def test_a_program_that_spins_is_found_in_proc():
    """It is started by another process, so that it is none of ours."""
    script = "import os, sys, time\nif os.fork() == 0:\n  print(os.getpid(), flush=True)\n  while True: pass\n"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.wait()
    try:
        before, begin = processes(), time.monotonic()
        found: list[OtherProgram] = []
        while time.monotonic() < begin + 30 and not found:
            time.sleep(0.2)
            now = processes()  # of which only this one is looked at: the machine may be busy
            found = busiest({pid: before[pid]}, {pid: now[pid]}, 0.2)
        assert found
        assert found[0].name.startswith("python")
    finally:
        os.kill(pid, 9)


def followed(run, event, **usage):
    """Return ``run`` with a sample of 1 s of a worker that used 1 of its 2 CPUs."""
    usual = {"worker_cpus": 2, "user_s": 1.0, "system_s": 0.0, "worker_cpus_busy_s": 1.0}
    return run.followed_by({**event, "seconds": 1.0, "usage": {**event["usage"], **usual, **usage}})


@pytest.mark.parametrize(
    ("hit", "said_after"),
    [({0}, None), ({0, 1}, 1), ({1, 2}, None), ({0, 2, 3}, None), ({0, 2, 3, 4, 5}, 4), (set(), None)],
    ids=["one", "the first two", "after a quiet one", "half", "nearly all, and two in a row", "none"],
)
def test_it_is_said_once_after_two_disturbed_blocks_in_a_row(hit, said_after):
    lookout, said = Neighbours(), []
    first, *events = run_events(arm("mine"), blocks=6)
    run = Run.parse([first])
    for block in range(6):
        run = followed(run, events[block], worker_cpus_busy_s=2.0 if block in hit else 1.0)
        if (load := lookout.after_block(run, block)) is not None:
            said.append(block)
            event, warning = load
            named = tuple(Program(program.name, program.pid, program.cpus) for program in event.programs)
            assert (event.block, warning) == (block, BesidePrograms(1.0, 2, named))
    assert said == [said_after] * (said_after is not None)


def test_no_program_is_named_for_a_disturbance_that_is_none_of_a_program():
    lookout = Neighbours()
    first, *events = run_events(arm("mine"), blocks=2)
    run = followed(Run.parse([first]), events[0], machine_swapped_bytes=2**21)
    assert lookout.after_block(run, 0) is None
    run = followed(run, events[1], machine_swapped_bytes=2**22)
    load = lookout.after_block(run, 1)
    assert load is not None
    assert load[1] == Disturbed((Swapped(2**22),))
