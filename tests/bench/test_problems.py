"""The problem of a recorded event is a message; one that can't be read is said to be unknown."""

from __future__ import annotations

import json

import pytest
from envkit.bench.messages import WorkerEnded, WorkerReported
from envkit.bench.parse_sample import worker_problem
from envkit.bench.problem_messages import FewSteps, NoDocument, UnknownProblem, WarmingUp
from envkit.bench.problems import restored
from envkit.checks.messages import ProcessLimitElsewhere
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus, Killed, TimedOut
from envkit.rendering import text
from envkit.worker.messages import MemoryRanOut, ProcessKilled
from envkit.worker.messages.user_command import CommandEnded, NoOutput

RAN_OUT = MemoryRanOut("python", 2, "/job", 2**30, 2**30, retaining="MALLOC_CONF")


@pytest.mark.parametrize(
    "problem",
    [
        NoDocument(),
        FewSteps(2, 3),
        WarmingUp(WorkerEnded(Killed("SIGKILL", "4g"), ProcessLimitElsewhere())),
        WorkerEnded(Killed("SIGKILL", memory=RAN_OUT)),
        WorkerReported(ProcessKilled("rank 1", "SIGSEGV"), TimedOut(4)),  # a float that was written as a whole number
    ],
)
def test_a_problem_is_read_as_it_was_recorded(problem):
    assert restored(json.loads(json.dumps(problem.to_json()))) == problem


@pytest.mark.parametrize(
    ("recorded", "code"),
    [
        ({"code": "bench.of-tomorrow", "severity": "error", "seconds": 1}, "bench.of-tomorrow"),
        ({**NoDocument().to_json(), "more": 1}, "bench.no-document"),
        ({**FewSteps(2, 3).to_json(), "found": "two"}, "bench.few-steps"),
        ({**FewSteps(2, 3).to_json(), "found": True}, "bench.few-steps"),
        ({**WarmingUp(NoDocument()).to_json(), "problem": {"code": "bench.of-tomorrow"}}, "bench.warming-up"),
        ({**WarmingUp(FewSteps(2, 3)).to_json(), "problem": {"code": "bench.few-steps"}}, "bench.warming-up"),
        (
            {**WorkerEnded(ExitStatus(1)).to_json(), "failure": {"code": "engines.exit-status", "status": None}},
            "bench.worker-ended",
        ),
        ({"code": 5}, None),
        ({}, None),
        ("ended with exit status 3", None),
        (["x"], None),
        (None, None),
    ],
)
def test_one_that_this_version_does_not_know(recorded, code):
    found = restored(recorded)
    assert found == UnknownProblem(code)
    assert "does not know" in text(found)


def test_a_report_of_a_record_with_one_is_printed(bench, simulation, instant, cli, run_folder):
    simulation.worker("mine", does="exit", status=3)
    assert bench("mine").returncode == 1
    path = run_folder / "record.jsonl"
    path.write_text(path.read_text().replace('"code": "engines.exit-status"', '"code": "engines.of-tomorrow"'))
    for options in ([], ["--details"], ["--json"]):
        result = cli("report", run_folder, *options).ended(0, stderr="")
        assert "this version of envkit does not know" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("told", "failure", "beside"),
    [
        (ProcessKilled("rank 1", "SIGKILL"), ExitStatus(1, RAN_OUT), ExitStatus(1, RAN_OUT)),
        (ProcessKilled("rank 1", "SIGSEGV"), ExitStatus(1), None),
        (CommandEnded(1, NoOutput(), RAN_OUT), ExitStatus(1, RAN_OUT), None),  # the worker has said so itself
        (CommandEnded(1, NoOutput()), ExitStatus(1, RAN_OUT), ExitStatus(1, RAN_OUT)),
        (CommandEnded(1, NoOutput()), Killed("SIGKILL", "4g"), Killed("SIGKILL", "4g")),
    ],
)
def test_what_the_engine_knows_of_memory_is_beside_what_the_worker_reports(told, failure, beside):
    printed = json.dumps({"problem": told.to_json()})
    assert worker_problem(Outcome(f"{printed}\n", "", 1.0, failure)) == WorkerReported(told, beside)
