"""Stacks of Python packages are held against each other, and each setting against the same stack with nothing set."""

from __future__ import annotations

import re

import pytest

from benchmarks import stacks
from tests.benchmarks.conftest import refusal
from tests.instant_engine import InstantEngine
from tests.simulation import Simulation, times


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A stack whose PyTorch is called ``torch``, as ``--stack`` is given it."""
    engines = {}

    def make(name, torch, cuda="None"):
        folder = tmp_path / name
        folder.mkdir()
        simulation = Simulation(folder)
        parts = {"torch": {"cuda": cuda}, "python": {}, "conda": {}, "system": {}}
        simulation.inspection(packages={"torch": torch, "numpy": "2.0"}, contents=parts)
        engines[str(simulation.python)] = InstantEngine(simulation)
        return simulation, f"{name}={simulation.python}"

    monkeypatch.setattr(stacks, "LocalEngine", lambda options: engines[options.python])
    return make


@pytest.fixture
def run(benchmark_script, files, write_profile, monkeypatch):
    """Measure stacks in 20 blocks, with ``mine`` in the place of intel-omp."""
    mine, tuned = (write_profile(name, f"env: {{SIMULATED: {name}}}\n") for name in ("mine", "tuned"))
    monkeypatch.setattr(stacks, "BOOK", str(mine))
    fixed = ["--data", "synthetic", "--steps", 3, "--blocks", 20, "--tuned", tuned, *files]

    def start(*options):
        given = [word for option in options for word in ("--stack", option)]
        return benchmark_script(stacks, *fixed, *given)

    return start


def test_settings_within_a_stack_and_stacks_with_the_same_settings(run, made, page_file):
    old, book = made("book", "2.0.0", "11.7")
    new, next_ = made("next", "2.14.1", "13.0")
    old.worker("mine", seconds=times(0.5))
    new.worker("baseline", seconds=times(0.25))
    new.worker("tuned", seconds=times(0.125))
    result = run(book, next_)
    assert result.returncode == 0, result
    page = page_file.read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line[:2] == "| "]
    ratios = {tuple(row[:2]): row[4] for row in rows if len(row) == 6}
    assert ratios["| book", "mine"][:3] == "2.0"
    assert ratios["| book", "tuned"][:3] == "1.0"
    assert ratios["| next", "tuned"][:3] == "2.0"
    across = {tuple(row[:2]): row[2] for row in rows if len(row) == 5 and row[1] == "next"}
    assert across["| baseline", "next"][:3] == "4.0"
    assert "| book | 2.0.0 | CUDA 11.7 |" in page
    said = r"With PyTorch 2\.0\.0 the book's three variables made it 2\.0\d times as fast \([^)]+: faster\)"
    assert re.search(said, page)
    assert "built with CUDA and another is not" not in page


def test_that_builds_are_of_two_kinds_is_said(run, made, page_file):
    result = run(made("book", "2.0.0", "11.7")[1], made("own", "2.13.0+cpu")[1])
    assert result.returncode == 0, result
    assert "One PyTorch is built with CUDA and another is not" in page_file.read_text()


def test_one_stack_is_held_against_nothing(run, made):
    assert "there is one stack only: make another with make stack VARIANT=book" in refusal(run(made("one", "2.0.0")[1]))


def test_a_stack_without_an_interpreter(benchmark_script, files):
    result = benchmark_script(stacks, "--stack", "book", *files)
    assert result.returncode == 2
    assert "'book' is not NAME=PYTHON" in result.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--stack", "one=python3"), "two stacks have one name"),
        (("--python", "python3"), "name interpreters with --stack"),
        (("--tuned", "baseline"), "is measured anyway"),
        (("--blocks", 8), "--blocks 8: is too few, as intervals of 7 comparisons take 9 blocks; give --bl"),
        (("--stack", "two=/nowhere"), "--stack two: --python /nowhere: no such executable"),
    ],
)
def test_what_can_not_be_compared(benchmark_script, files, simulation, more, said):
    first = ("--stack", f"one={simulation.python}", *(() if "--stack" in more else ("--stack", "two=python3")))
    assert said in refusal(benchmark_script(stacks, "--data", "synthetic", *first, *more, *files))
