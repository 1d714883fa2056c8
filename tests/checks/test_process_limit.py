"""Where no more processes or threads can be started, the limit is named."""

from __future__ import annotations

import errno
import os

import pytest
from envkit import cli
from envkit.bench.parse_sample import with_worker_error
from envkit.checks import process_limit
from envkit.engines.base import Outcome

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
    outcome = with_worker_error(Outcome("", f"{printed}\n", 1.0, "ended with exit status 1"))
    said = f"ended with exit status 1; it could start no more processes or threads: {LIMIT}, and a training needs room"
    assert outcome.failure.startswith(f"{said} for about 68 more; raise it (ulimit -u")


def test_another_failure_is_not_explained_by_it(near):
    assert (
        with_worker_error(Outcome("", "Killed", 1.0, "ended with exit status 1")).failure == "ended with exit status 1"
    )


def test_a_limit_that_is_not_seen_here_is_where_the_worker_ran(monkeypatch):
    monkeypatch.setattr(process_limit, "processes", lambda: (None, None))
    said = process_limit.explained("RuntimeError: can't start new thread")
    assert "a limit of processes and threads where it ran is reached" in said


def test_the_runner_itself_can_start_nothing(near, monkeypatch, capsys):
    def fail(argv):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setattr(cli, "_drop_output", lambda: None)
    assert cli.main(["bench"]) == 2
    assert capsys.readouterr().err.startswith(f"envkit: no more processes or threads can be started: {LIMIT}")
