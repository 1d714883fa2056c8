"""What nodes say of themselves before they measure."""

from __future__ import annotations

from pathlib import Path

import pytest
from envkit.cluster.slurm import node_preflight
from envkit.cluster.slurm.messages import ClockApart, NotShared, ProjectMissing, PythonMissing
from envkit.cluster.slurm.node_preflight import RollCall

from tests.cluster.slurm.conftest import JOB, settings

FOLDER = Path("/shared/run")
LINES = """\
before node1 1000.5
answer node2 1001.25 nothing
answer node1 1001.0 nothing
after node1 1002.5
"""


@pytest.fixture
def called(folder):
    def read(text: str) -> RollCall:
        (folder / f"roll-call-{JOB}").write_text(text)
        found = node_preflight.read(folder, JOB)
        assert found is not None
        return found

    return read


def test_not_called_yet(folder):
    assert node_preflight.read(folder, JOB) is None


def test_answers_in_any_order(called):
    found = called(LINES)
    assert (found.host, found.before, found.after) == ("node1", 1000.5, 1002.5)
    assert found.times == {"node1": 1001.0, "node2": 1001.25}
    assert [found.problem(node, settings(), FOLDER) for node in ("node1", "node2")] == [None, None]


def test_lines_that_are_something_else_are_passed_over(called):
    noise = "answer node9\nslurmstepd: error: oh\nanswer node8 soon nothing\n\n"
    assert called(noise + LINES) == called(LINES)


@pytest.mark.parametrize(
    ("time", "apart"),
    # wherever it came between before and after, the clocks may be equal
    [("1000.5", 0), ("1002.5", 0), ("1062.5", 60), ("940.5", -60), ("1002.6", pytest.approx(0.1))],
)
def test_a_clock_is_as_far_off_as_the_answer_proves(called, time, apart):
    assert called(LINES.replace("1001.25", time)).clock("node2") == apart


def test_nothing_is_said_of_a_clock_before_all_have_answered(called):
    found = called("".join(LINES.replace("1001.25", "5000").splitlines(keepends=True)[:-1]))
    assert found.clock_problem("node2") is None


@pytest.mark.parametrize(
    ("time", "apart"),
    [("4602.5", 3600.0), ("997.0", -3.5), ("1004.4", None), ("998.6", None)],
)
def test_clocks_that_are_apart(called, time, apart):
    problem = called(LINES.replace("1001.25", time)).clock_problem("node2")
    assert problem == (None if apart is None else ClockApart("node1", apart))
    assert called(LINES).clock_problem("node1") is None


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("folder", NotShared(str(FOLDER))),
        ("python", PythonMissing(settings().python)),
        ("project", ProjectMissing(settings().project)),
    ],
)
def test_what_is_missing_has_a_mend(called, missing, problem):
    found = called(LINES.replace("1001.25 nothing", f"1001.25 {missing}"))
    assert found.problem("node2", settings(), FOLDER) == problem
    assert found.problem("node1", settings(), FOLDER) is None
