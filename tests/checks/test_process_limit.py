"""Where no more processes or threads can be started, the limit is named."""

from __future__ import annotations

import errno
import os

import pytest
from envkit import cli
from envkit.bench.messages import WorkerEnded
from envkit.bench.parse_sample import worker_problem
from envkit.checks import process_limit
from envkit.checks.messages import ProcessLimitElsewhere, ProcessLimitNear
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus
from envkit.rendering import text

LIMIT = "ulimit -u is 40, and this user has 38"


@pytest.fixture
def near(monkeypatch):
    monkeypatch.setattr(process_limit, "processes", lambda: (2, LIMIT))
    monkeypatch.setattr(process_limit, "cpu_facts", lambda: {"usable_cpus": 4})


@pytest.mark.parametrize(
    "printed",
    ["libgomp: Thread creation failed: Resource temporarily unavailable",
     "OMP: Error #34: System unable to allocate necessary resources for OMP thread:",
     "RuntimeError: can't start new thread", "BlockingIOError: [Errno 11] Resource temporarily unavailable",
     "bash: fork: retry: Resource temporarily unavailable"],
)  # fmt: skip
def test_a_worker_that_could_start_no_threads(near, printed):
    problem = worker_problem(Outcome("", f"{printed}\n", 1.0, ExitStatus(1)))
    assert problem == WorkerEnded(ExitStatus(1), ProcessLimitNear(LIMIT, 68))


def test_another_failure_is_not_explained_by_it(near):
    assert worker_problem(Outcome("", "Killed", 1.0, ExitStatus(1))) == WorkerEnded(ExitStatus(1))


def test_a_limit_that_is_not_seen_here_is_where_the_worker_ran(monkeypatch):
    monkeypatch.setattr(process_limit, "processes", lambda: (None, None))
    assert process_limit.cause_of("RuntimeError: can't start new thread") == ProcessLimitElsewhere()


def test_the_runner_itself_can_start_nothing(near, monkeypatch, capsys):
    def fail(argv):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    assert cli.main(["bench"]) == 2
    assert capsys.readouterr().err == f"envkit: {text(ProcessLimitNear(LIMIT, 68))}\n"
