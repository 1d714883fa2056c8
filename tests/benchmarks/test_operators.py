"""The page of operators: runs of the command with simulated workers, and what is said of them."""

from __future__ import annotations

import json

import pytest

from benchmarks import operators
from tests.benchmarks.conftest import refusal


@pytest.fixture
def script(benchmark_script, in_process, simulation, instant, files):
    fixed = ("--python", simulation.python, *files, "--steps", 4, "--data", "synthetic")
    return lambda *options: benchmark_script(operators, *options, *fixed)


@pytest.fixture
def mine(simulation, write_profile):
    usage = {"user_s": 0.4, "system_s": 0.01, "minor_faults": 4}
    simulation.worker("baseline", seconds=[1.0], usage={"user_s": 0.5, "system_s": 0.5})
    simulation.worker("mine", seconds=[0.5], usage=usage, operators={"aten::mm": 0.1, "aten::add_": 0.5})
    return write_profile("mine", "env:\n  SIMULATED: mine\n")


def test_the_page_has_both_tables_and_the_reason(script, mine, page_file):
    result = script(mine)
    assert (result.returncode, result.stderr) == (0, "")
    text = page_file.read_text()
    for said in (
        "SYNTHETIC DATA",
        "## mine beside baseline",
        "page faults fall from 100 to 1 per step",
        "| baseline | 250.00 | 125.00 | 125.00 | 100 | 275.00 (+10%) |",
        "| mm | 2 | 137.50 | 50.0% | 13.75 | 10.0% | 10.00 | -123.75 |  |",
        "| other operators |  | 0.00 | 0.0% | 0.00 | 0.0% | - | +0.00 |  |",
    ):
        assert said in text


def test_the_page_has_the_phases_of_both_workloads(script, mine, page_file, simulation):
    phases = {"wait for input": 0.75, "backward": 0.25}
    batch = {"workers": 2, "parts": {"decode": 0.5}}
    simulation.worker("baseline", seconds=[1.0], phases=phases, batch=batch)
    simulation.worker("mine", seconds=[0.5], phases=phases, batch=batch)
    assert script(mine).returncode == 0
    text = page_file.read_text()
    for said in (
        "### cnn: mine beside baseline",
        "### loader: mine beside baseline",
        "| ms per step | baseline | mine | saved | 95% interval |",
        "| wait for input | 187.50 | 93.75 | +93.75 | +93.75 to +93.75 |",
        "| whole step | 250.00 | 125.00 | +125.00 | +125.00 to +125.00 |",
        "in 2 worker processes",
        "| decode | 125.00 | 62.50 | +62.50 | +62.50 to +62.50 |",
    ):
        assert said in text


def test_the_page_has_the_forward_pass_beside_the_book_s(script, mine, page_file, simulation):
    of_baseline = {"aten::mkldnn_convolution": 0.32, "aten::max_pool2d_with_indices": 0.16, "aten::max_pool2d": 0.08}
    simulation.worker("baseline", seconds=[1.0], operators={**of_baseline, "aten::addmm": 0.16})
    assert script(mine, "--processes", 1).returncode == 0
    text = page_file.read_text()
    for said in (
        "| forward pass | baseline | mine | the book |",
        "| convolutions | 40% | 0% | 44% |",  # 0.32 of the 0.8 of a step
        "| max pooling | 30% | 0% | 30% |",
        "| addmm | 20% | 0% | 14% |",
        "| everything else | 10% | 100% | 12% |",
        "| all of it, ms | 220.00 | 110.00 |  |",
    ):
        assert said in text


def test_what_was_measured_is_not_measured_again(script, mine, simulation, results_file):
    script(mine)
    before = len(simulation.starts())
    assert script(mine).returncode == 0
    assert len(simulation.starts()) == before
    kinds = [json.loads(line)["kind"] for line in results_file.read_text().splitlines()]
    assert kinds == ["settings", "comparison", "phases", "phases", "forward"]


def test_a_profile_that_fails_ends_it_with_one_line(script, simulation):
    simulation.worker("baseline", does="exit", status=3)
    said = refusal(script("glibc-retain"))
    assert "glibc-retain: envkit breakdown ended with exit status 1: a worker of baseline: ended with" in said
