"""Lengths of padding are measured in turn, and what differs is told from what does not."""

from __future__ import annotations

import random

import pytest
from envkit.bench.job import PADDING

from benchmarks import padding
from tests.benchmarks.conftest import refusal


@pytest.fixture
def run(simulation, benchmark_script, files):
    fixed = ["--python", simulation.python, "--data", "synthetic", "--steps", 3, *files]
    return lambda *options: benchmark_script(padding, *fixed, *options)


def given(simulation):
    """The length of the padding in each worker that was started."""
    return [len(start["environment"][PADDING]) for start in simulation.starts()]


def test_each_block_has_each_length_once(run, instant_bench, simulation, page_file):
    result = run("--blocks", 3, "--lengths", "0,10,2000")
    assert (result.returncode, result.stderr) == (0, "")
    lengths = given(simulation)
    assert [sorted(lengths[start : start + 3]) for start in (0, 3, 6)] == [[0, 10, 2000]] * 3
    assert "9/9  addresses random" in result.stdout
    page = page_file.read_text()
    assert "| 2,000 |" in page
    assert "addresses fixed" not in page


def test_more_blocks_go_on_with_those_that_there_are(run, instant_bench, simulation):
    for blocks in (1, 2):
        run("--blocks", blocks, "--lengths", "0,10,2000")
    assert len(given(simulation)) == 6


def test_without_randomisation_too(run, simulation, page_file, monkeypatch):
    monkeypatch.setattr(padding, "_require_aslr_off", lambda: None)
    monkeypatch.setattr(padding, "ASLR_OFF", ("env", "FIXED=yes"))
    run("--blocks", 2, "--lengths", "0,10,20", "--aslr-off")
    fixed = [len(start["environment"][PADDING]) for start in simulation.starts() if "FIXED" in start["environment"]]
    assert (len(given(simulation)), sorted(fixed)) == (12, [0, 0, 10, 10, 20, 20])
    assert "## With addresses fixed" in page_file.read_text()


def test_randomisation_that_stays_on_is_refused(run, monkeypatch):
    monkeypatch.setattr(padding, "ASLR_OFF", ("env",))
    assert "can't be turned off here" in refusal(run("--aslr-off"))


def test_a_worker_that_fails_ends_it_with_one_line(run, instant_bench, simulation):
    simulation.worker("baseline", does="exit", status=3, stderr="no memory")
    assert "ended with exit status 3: no memory" in refusal(run())


def test_too_few_lengths_are_refused(run):
    result = run("--lengths", "0,0,10")
    assert result.returncode == 2
    assert "three or more different numbers" in result.stderr


def noisy(factor: float, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [factor * draw.gauss(1.0, 0.01) for _ in range(12)]


def test_a_length_that_is_slower_is_found():
    table, said = padding.analysis({0: noisy(1.0, 1), 16: noisy(1.0, 2), 32: noisy(1.1, 3)}, steps=100)
    row = next(line for line in table.splitlines() if line.startswith("| 32 |"))
    ratio, low, high = (float(text) for text in row.replace("to", "|").split("|")[3:6])
    assert low < 1 / 1.1 < high < 1
    assert ratio == pytest.approx(1 / 1.1, abs=0.01)
    assert "some length differs" in said


def test_lengths_that_are_the_same_are_found_to_be_so():
    table, said = padding.analysis({0: noisy(1.0, 1), 16: noisy(1.0, 2), 32: noisy(1.0, 3)}, steps=100)
    assert "10.0" in table  # milliseconds of 100 steps that take a second
    assert "no difference between the lengths is found" in said
