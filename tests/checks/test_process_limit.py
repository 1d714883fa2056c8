"""Where no more processes or threads can be started, the limit is named."""

from __future__ import annotations

import errno
import json
import os

import pytest
from envkit import cli
from envkit.bench.messages import WorkerEnded, WorkerReported
from envkit.bench.parse_sample import worker_problem
from envkit.checks import process_limit
from envkit.checks.messages import AddressSpaceLimit, ProcessLimitElsewhere, ProcessLimitNear
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus
from envkit.rendering import text
from envkit.worker.messages.user_command import CommandEnded, LastLine

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


def test_a_users_command_that_could_start_no_threads(near):
    """Its own worker reports the last line that it printed."""
    ended = CommandEnded(1, LastLine("libgomp: Thread creation failed: Resource temporarily unavailable"))
    printed = json.dumps({"problem": ended.to_json()})
    problem = worker_problem(Outcome(f"{printed}\n", "", 1.0, ExitStatus(1)))
    assert problem == WorkerReported(ended, None, ProcessLimitNear(LIMIT, 68))


@pytest.fixture
def limited(monkeypatch):
    """10 GiB of address space, and no limit of processes."""
    monkeypatch.setattr(process_limit, "processes", lambda: (None, None))
    monkeypatch.setattr(process_limit.resource, "getrlimit", lambda what: (10 * 2**30, 10 * 2**30))


def test_threads_whose_stacks_do_not_fit_into_the_address_space(limited):
    assert process_limit.cause_of("libgomp: Thread creation failed") == AddressSpaceLimit(10 * 2**30)


def test_a_limit_of_processes_that_is_near_comes_before_that_of_address_space(limited, near):
    assert process_limit.cause_of("libgomp: Thread creation failed") == ProcessLimitNear(LIMIT, 68)


@pytest.mark.parametrize(
    ("variables", "exceed"),
    [
        ({"OMP_NUM_THREADS": "2", "OMP_STACKSIZE": "12G"}, True),
        ({"OMP_NUM_THREADS": "2", "OMP_STACKSIZE": " 12 g "}, True),
        ({"OMP_NUM_THREADS": "2", "OMP_STACKSIZE": "12000000"}, True),  # KiB
        ({"OMP_NUM_THREADS": "5,2", "GOMP_STACKSIZE": "3G"}, True),
        ({"OMP_NUM_THREADS": "5", "KMP_STACKSIZE": "1M", "OMP_STACKSIZE": "3G"}, False),
        ({"OMP_NUM_THREADS": "4", "OMP_STACKSIZE": "3G"}, False),
        ({"OMP_NUM_THREADS": "1", "OMP_STACKSIZE": "12G"}, False),
        ({"OMP_NUM_THREADS": "2", "OMP_STACKSIZE": "much"}, False),
        ({"OMP_NUM_THREADS": "2"}, False),
    ],
)
def test_stacks_that_can_not_fit(limited, variables, exceed):
    assert (process_limit.too_large_stacks(variables) is not None) == exceed


def test_stacks_where_address_space_has_no_limit():
    assert process_limit.too_large_stacks({"OMP_NUM_THREADS": "9", "OMP_STACKSIZE": "90G"}) is None


def test_another_failure_is_not_explained_by_it(near):
    assert worker_problem(Outcome("", "Killed", 1.0, ExitStatus(1))) == WorkerEnded(ExitStatus(1))


def test_a_limit_that_is_not_seen_here_is_where_the_worker_ran(monkeypatch):
    monkeypatch.setattr(process_limit, "processes", lambda: (None, None))
    assert process_limit.cause_of("RuntimeError: can't start new thread") == ProcessLimitElsewhere()


def test_the_runner_itself_can_start_nothing(near, monkeypatch, capsys):
    def fail(argv):
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setattr(cli, "_drop", lambda stream: None)
    assert cli.main(["bench"]) == 2
    assert capsys.readouterr().err == f"envkit: {text(ProcessLimitNear(LIMIT, 68))}\n"
