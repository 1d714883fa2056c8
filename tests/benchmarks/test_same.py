"""The baseline against itself: runs of the command with simulated workers, and how their verdicts are counted."""

from __future__ import annotations

import json

import pytest
from envkit.bench.record import FILE_NAME

from benchmarks import page, same
from benchmarks.results import Results
from tests.benchmarks.conftest import refusal


@pytest.fixture
def run(benchmark_script, simulation, instant, in_process, files):
    fixed = (*files, "--python", simulation.python, "--budget", "20s", "--data", "synthetic")
    return lambda steps=3, runs=1: benchmark_script(same, *fixed, "--steps", steps, "--runs", runs)


@pytest.fixture
def first_record(results_file):
    """The record of the first run."""
    return results_file.with_suffix("") / "00" / FILE_NAME


def test_runs_calibrate_and_keeps_its_record(run, first_record, page_file):
    result = run()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("1/1  ")
    assert first_record.exists()
    text = page_file.read_text()
    assert "of 1 (" in text
    assert "The floor: a block's log ratio has a standard deviation of " in text


def test_a_run_that_fails_ends_it_with_one_line(run, simulation):
    simulation.worker("baseline", does="exit", status=3)
    assert "envkit plan ended with exit status 1" in refusal(run())


def measured(path, *verdicts: tuple[str, float | None, float | None]) -> None:
    """Write a file of results with these verdicts and the ends of their intervals."""
    results = Results(path, {"machine": page.machine(), "budget_s": 20.0, "steps": 3})
    for number, (verdict, low, high) in enumerate(verdicts):
        results.append(
            "run", run=number, duration_s=1.0, verdict=verdict, blocks_with_interference=2, ended="budget used up",
            low=low, high=high, ratio=1.0 if low else None, blocks=9 if low else None,
        )  # fmt: skip


def test_verdicts_and_intervals_are_counted(run, results_file, page_file):
    verdicts = [
        ("faster", 1.01, 1.05), ("slower", 0.95, 0.99), ("no difference found", 0.9, 1.1),
        ("no difference larger than 2%", 0.99, 1.01), ("too few samples", None, None),
    ]  # fmt: skip
    measured(results_file, *verdicts)
    assert run(runs=5).stdout == f"written: {page_file}\n"  # nothing was left to measure
    text = page_file.read_text()
    for said in (
        "Clopper and Pearson 1934): 2 of 5 (5% to 85%)",
        "intervals that hold 1: 2 of 4 (7% to 93%)",
        "larger than the margin excluded: 1 of 5",
        "median half-width of the interval: ±2.0%",
        "too short for an interval: 1 of 5",
        "| 1 | faster | 1.000 | 1.010 to 1.050 | ±2.0% | 9 | 2 |",
        "| 5 | too few samples | - | - | - | - | 2 |",
    ):
        assert said in text


def test_results_of_other_settings_are_refused(run, results_file):
    measured(results_file)
    assert "was measured with steps 3, and now it is 4" in refusal(run(steps=4))


def test_a_run_that_was_interrupted_is_gone_on_with(run, first_record, results_file):
    run()
    lines = first_record.read_text().splitlines(keepends=True)
    sample = next(number for number, line in enumerate(lines) if '"sample"' in line)
    first_record.write_text("".join(lines[: sample + 1]))  # as if it had been killed after its first sample
    results_file.unlink()
    assert run().returncode == 0
    events = [json.loads(line)["event"] for line in first_record.read_text().splitlines()]
    assert (events.count("run"), events.count("resume"), events[-1]) == (1, 1, "end")
