"""A training that runs already, watched from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from envkit.checks import steady_process
from envkit.checks.process_messages import EndedWhileWatched, NoSuchProcess, ProcessOfOther, ProcessWithoutTorch
from envkit.checks.steady_process import Look, increase, look, watch
from envkit.common.errors import InputError
from envkit.engines import owner
from envkit.worker.user_command.process_tree import Look as Tree
from envkit.worker.user_command.process_tree import Usage

from tests.processes import until

FAULTS = (
    "import mmap\nprint(flush=True)\nwhile True:\n  m = mmap.mmap(-1, 2**24)\n  m.write(bytes(2**24))\n  m.close()\n"
)
SPINS = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(flush=True)\nwhile True: pass\n"
SLEEPS = "import time\nprint(flush=True)\ntime.sleep(600)\n"


def has_worked(seen):
    """Whether what was seen of a program like FAULTS shows what it does."""
    return seen["usage"]["minor_faults"] > 1000 and seen["usage"]["system_s"] > 0


@pytest.fixture
def begun():
    """Start a Python program; it has printed a line when this returns."""
    started = []

    def run(code):
        process = subprocess.Popen([sys.executable, "-IS", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield run
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)  # with what it has started
        process.communicate()


@pytest.fixture
def any_program(monkeypatch):
    """Watch what has no PyTorch too."""
    monkeypatch.setattr(steady_process, "TORCH", "")


def test_one_that_gets_and_gives_back_memory(begun, any_program):
    pid = begun(FAULTS).pid
    # one that had no CPU meanwhile is watched again
    seen = until(lambda: has_worked(one := watch(pid, 0.3)) and one)
    assert seen["seconds"] >= 0.3


def test_one_that_sleeps(begun, any_program):
    pid = begun(SLEEPS).pid
    until(lambda: (fields := owner.stat_fields(pid)) and fields[0] == "S")
    seen = watch(pid, 0.5)
    assert (seen["usage"]["minor_faults"], seen["usage"]["user_s"]) == (0, 0.0)


def test_of_two_that_share_a_cpu_each_waits_for_it_and_its_load_is_that_of_both(begun, any_program):
    pid, _ = (begun(SPINS).pid for _ in range(2))

    def share():
        seen = watch(pid, 0.3)
        usage = seen["usage"]
        assert usage["worker_cpus"] == 1
        by_other_s = usage["worker_cpus_busy_s"] - usage["user_s"] - usage["system_s"]
        return seen["waited_s"] > 0.05 and by_other_s > 0.05

    assert until(share)


def test_what_it_has_started_counts_too(begun):
    parent = begun(f"import subprocess, sys\nsubprocess.run([sys.executable, '-IS', '-c', {FAULTS!r}])\n")
    assert until(lambda: len(look(parent.pid).tree.processes) == 2)


def test_only_what_was_used_meanwhile_counts():
    before = Look(Tree(10.0, {1: Usage(5.0, 0.0, 100)}), {1: 1.0})
    then = Look(Tree(11.0, {1: Usage(6.0, 0.0, 110), 2: Usage(0.5, 0.0, 7)}), {1: 1.0, 2: 0.25})
    after = Look(Tree(12.0, {1: Usage(7.0, 0.0, 120)}), {1: 1.0})  # the second has ended
    found = increase([before, then, after])
    assert (found["seconds"], found["waited_s"]) == (2.0, 0.25)
    assert (found["usage"]["user_s"], found["usage"]["minor_faults"]) == (2.5, 27)


def test_one_that_ends_at_once(begun, any_program, monkeypatch):
    """It is ended after the second look."""
    process = begun(SLEEPS)
    looks = []

    def look_and_end_it(pid):
        looks.append(look(pid))
        if len(looks) == 2:
            process.kill()
        return looks[-1]

    monkeypatch.setattr(steady_process, "look", look_and_end_it)
    monkeypatch.setattr(steady_process, "SHORTEST_S", 600.0)  # a slow machine may take seconds between two looks
    with pytest.raises(InputError) as error:
        watch(process.pid, 1000.0)
    assert isinstance(error.value.message, EndedWhileWatched)
    assert error.value.message.pid == process.pid
    assert 0 < error.value.message.seconds < 600
    assert len(looks) > 2


def test_one_that_is_not_there():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(InputError) as error:
        watch(process.pid, 1.0)
    assert error.value.message == NoSuchProcess(process.pid)


def test_one_of_its_children_may_have_ended_since_the_first_look(begun, any_program, monkeypatch):
    pid = begun(SLEEPS).pid
    with subprocess.Popen(["true"]) as child:
        child.wait()

    def with_ended(pid):
        seen = look(pid)
        return Look(Tree(seen.at_s, {**seen.tree.processes, child.pid: Usage()}), seen.waited_s)

    monkeypatch.setattr(steady_process, "look", with_ended)
    steady_process.require(pid)


def test_one_that_does_not_train(begun):
    pid = begun(SLEEPS).pid
    with pytest.raises(InputError) as error:
        watch(pid, 1.0)
    assert error.value.message == ProcessWithoutTorch(pid)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_users(begun):
    """Looked at by nobody, who may not."""
    pid = begun(SLEEPS).pid
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            watch(pid, 1.0)
        except InputError as error:
            os._exit(0 if error.message == ProcessOfOther(pid) else 1)
        os._exit(2)
    ended = until(lambda: (seen := os.waitpid(child, os.WNOHANG)) != (0, 0) and seen)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


@pytest.mark.parametrize(
    ("threads", "used_s", "keeps"), [(2, 15.0, True), (2, 50.0, False), (4, 15.0, True), (None, 50.0, True)]
)
def test_a_process_that_uses_more_cpus_than_its_threads_has_changed_their_number(threads, used_s, keeps, monkeypatch):
    """It is looked at twice within 10 s."""
    reading = {
        "threads": threads,
        "threads_by": "OMP_NUM_THREADS",
        "helper_cpu_s": 0.0,
        "pid": 7,
        "above": [],
        "ranks": 1,
    }
    at_s, readings = iter([0.0, 10.0]), iter([{**reading, "cpu_s": 1.0}, {**reading, "cpu_s": 1.0 + used_s}])
    monkeypatch.setattr(steady_process.time, "monotonic", lambda: next(at_s))
    monkeypatch.setattr(steady_process.cpu_use, "of_process", lambda pid: next(readings))
    used = steady_process.CpuUse()
    used.look([7])
    used.look([7])
    monkeypatch.undo()
    assert ("threads_by" in used.of_trainer()) == keeps
