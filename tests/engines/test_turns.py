"""Workers that are started together: each waits until those before it have ended, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from envkit.engines import process, turns
from envkit.engines.base import PROJECT, EngineOptions, Launch
from envkit.engines.local import LocalEngine
from envkit.engines.messages import ExitStatus, TimedOut
from envkit.engines.process import Process, Started
from envkit.worker.request import RunCommand, Train, UserCommand

from tests import second_user
from tests.processes import gone, until

# Waits for its turn as a worker does, and notes when it began to wait, to train, and to end.
WORKER = """
note() { echo "$1 $0" >> log; }
note waits; echo envkit-ready; read -r -n 1 turn; [ "$turn" ] || exit 1
note trains; sleep 0.2; note ends; echo "done $0"
"""


@dataclass
class ShellEngine:
    """Its workers are shell scripts, which read the request and wait."""

    folder: Path

    def start(self, launch: Launch) -> Started:
        assert isinstance(launch.work, RunCommand)
        assert launch.request is not None
        assert launch.request.waits
        argv = ["/bin/bash", "-c", f"read -r request; {launch.work.command.argv[0]}", launch.work.command.argv[1]]
        return Started(Process(argv, dict(os.environ), self.folder, launch.request, launch.ahead), launch.timeout_s)


@pytest.fixture
def start(tmp_path):
    """What starts workers ``a``, ``b``, ... that run the scripts given."""

    def starts(*scripts, timeout_s=60.0):
        engine = ShellEngine(tmp_path)
        return [
            (engine, Launch(RunCommand(UserCommand((script, name), "/")), timeout_s=timeout_s))
            for script, name in zip(scripts, "abc", strict=False)
        ]

    return starts


@pytest.fixture
def log(tmp_path):
    return lambda: (tmp_path / "log").read_text().split("\n")[:-1]


def test_all_wait_before_the_first_trains_and_then_one_trains_at_a_time(start, log):
    with turns.together(start(WORKER, WORKER, WORKER)) as waiting:
        outcomes = [one.train() for one in waiting]
    assert [one.stdout for one in outcomes] == ["done a\n", "done b\n", "done c\n"]
    assert sorted(log()[:3]) == ["waits a", "waits b", "waits c"]
    assert log()[3:] == [f"{what} {name}" for name in "abc" for what in ("trains", "ends")]


def test_the_time_of_all_is_what_they_took_together(start):
    """The start of all counts as the first one's."""
    with turns.together(start(f"sleep 3; {WORKER}", WORKER)) as waiting:
        first, second = (one.train().seconds for one in waiting)
    assert first >= 3.2
    assert 0.2 <= second < first


def test_one_that_ends_before_its_turn_says_how(start):
    with turns.together(start("echo oh >&2; exit 3", WORKER)) as waiting:
        failed, well = (one.train() for one in waiting)
    assert (failed.failure, failed.stderr_tail) == (ExitStatus(3), "oh\n")
    assert well.failure is None


def test_one_that_is_never_ready_is_ended(start, log):
    with turns.together(start("echo $$ > pid; sleep 600", timeout_s=1.0)) as waiting:
        (outcome,) = (one.train() for one in waiting)
    assert outcome.failure == TimedOut(1.0)


def test_one_that_is_never_ready_is_ended_before_another_trains(start, tmp_path):
    hangs = "echo $$ > pid; sleep 600"
    with turns.together(start(WORKER, hangs, timeout_s=4.0)) as waiting:
        assert gone(int((tmp_path / "pid").read_text()))
        well, late = (one.train() for one in waiting)
    assert (well.failure, late.failure) == (None, TimedOut(4.0))
    assert late.seconds < 4.0 <= well.seconds  # the start of all is the first one's


def test_with_a_runtime_that_binds_the_first_thread_all_cpus_are_counted():
    """It is bound when torch is imported, before the worker's turn."""
    work = Train("cnn", "synthetic", warmup_steps=1, steps=2)
    launch = Launch(work, {"OMP_PROC_BIND": "true", "OMP_PLACES": "threads"}, dict(os.environ))
    with turns.together([(LocalEngine(EngineOptions()), launch)]) as waiting:
        (outcome,) = (one.train() for one in waiting)
    assert outcome.failure is None
    document = json.loads(outcome.stdout)
    assert document["usage"]["worker_cpus"] == len(os.sched_getaffinity(0))
    assert document["evidence"]["openmp"]["proc_bind"] != "false"


def test_one_that_somebody_stops_is_told_apart(start, monkeypatch):
    monkeypatch.setattr(process, "GRACE_S", 0.2)  # in which it can't hear that it is to end
    with turns.together(start(f"{WORKER.replace('sleep', 'kill -STOP $$; sleep')}", timeout_s=4.0)) as waiting:
        (outcome,) = (one.train() for one in waiting)
    assert outcome.failure.paused_by == "SIGSTOP"


def test_what_is_printed_before_its_turn_is_none_of_its_document(start):
    with turns.together(start(f"echo a banner; {WORKER}")) as waiting:
        (outcome,) = (one.train() for one in waiting)
    assert outcome.stdout == "done a\n"


def test_one_that_closes_its_output_is_never_ready(start):
    with turns.together(start("exec >&-; sleep 600", timeout_s=1.0)) as waiting:
        (outcome,) = (one.train() for one in waiting)
    assert outcome.failure == TimedOut(1.0)


# Opens every FIFO that it can find, to take what is written there, and says which.
THIEF = """
print("looking", flush=True)
opened = {}
while True:
    for folder, _, names in os.walk(sys.argv[1]):
        for path in (f"{folder}/{name}" for name in names):
            try:
                if path not in opened and stat.S_ISFIFO(os.lstat(path).st_mode):
                    opened[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    Path(sys.argv[2]).write_text(path)
            except OSError:
                pass
    for descriptor in opened.values():
        try:
            os.read(descriptor, 1)
        except BlockingIOError:
            pass
"""


@second_user.needs_root
def test_another_user_can_not_take_a_turn(start, shared_folder):
    """The turn has no name: nothing of it lies in the temporary folder, which all users share."""
    found = shared_folder / "found"
    with (
        second_user.beside(THIEF, shared_folder, found),
        turns.together(start(WORKER, WORKER, timeout_s=20.0)) as waiting,
    ):
        time.sleep(1.0)  # for the other user
        outcomes = [one.train() for one in waiting]
    assert [one.failure for one in outcomes] == [None, None]
    assert not found.exists(), found.read_text()


def test_an_interrupt_ends_those_that_wait(start, tmp_path):
    script = f"echo $$ > $0.pid; {WORKER}"
    with contextlib.suppress(KeyboardInterrupt), turns.together(start(script, script)):
        raise KeyboardInterrupt
    for name in "ab":
        assert gone(int((tmp_path / f"{name}.pid").read_text()))


RUNNER = """
import os, sys, time
from envkit.engines import base, turns
from envkit.engines.base import EngineOptions, Launch
from envkit.engines.local import LocalEngine
from envkit.worker.request import Train
launch = Launch(Train("cnn", "synthetic", steps=1), inherited=dict(os.environ))
with turns.together([(LocalEngine(EngineOptions()), launch)] * 2) as waiting:
    print(*(one.worker.process._process.pid for one in waiting), flush=True)
    time.sleep(600)
"""


def test_kill_of_the_runner_leaves_none_of_those_that_wait(start):
    runner = subprocess.Popen([sys.executable, "-c", RUNNER], cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    try:
        pids = [int(word) for word in runner.stdout.readline().split()]
        assert len(pids) == 2
        assert not any(gone(pid) for pid in pids)
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.communicate()
    until(lambda: all(gone(pid) for pid in pids))
