"""Each program that people had trouble with gets its right answer."""

from __future__ import annotations

import pytest

from tests.cases.case import try_out
from tests.cases.list import CASES

LAUNCHES = [(case, number) for case in CASES for number in range(len(case.launches))]


@pytest.mark.parametrize(("case", "number"), [pytest.param(case, n, id=f"{case.name}-{n}") for case, n in LAUNCHES])
def test_the_answer_is_right(case, number, tmp_path_factory, monkeypatch):
    if not case.can_run:
        pytest.skip("it takes root")
    launch = case.launches[number]
    # doctor measures cores once, and exec looks once into the interpreter
    command = launch.words.partition(" ")[0]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / f"cache-of-{command}"))
    outcome = try_out(case, launch)
    assert outcome.right, outcome.said


def test_the_names_are_different():
    assert len({case.name for case in CASES}) == len(CASES)
