"""The baseline against itself: runs of the command with simulated workers, and how their verdicts are counted."""

from __future__ import annotations

import json

import pytest

from benchmarks import page, same
from benchmarks.results import Results
from runner.bench.record import FILE_NAME

OPTIONS = ("--steps", 3, "--budget", "20s", "--data", "synthetic")


@pytest.fixture
def paths(tmp_path):
    return ["--results", tmp_path / "s.jsonl", "--page", tmp_path / "page.md"]


@pytest.fixture
def workers(simulation, instant, in_process):
    return simulation


def test_runs_calibrate_and_keeps_its_record(paths, workers, benchmark_script, tmp_path):
    result = benchmark_script(same, *paths, *OPTIONS, "--runs", 1, "--python", workers.python)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("1/1  ")
    assert (tmp_path / "s" / "00" / FILE_NAME).exists()
    text = (tmp_path / "page.md").read_text()
    assert "of 1 (" in text
    assert "The floor: a block's log ratio has a standard deviation of " in text


def test_a_run_that_fails_ends_it_with_one_line(paths, workers, benchmark_script):
    workers.worker("baseline", does="exit", status=3)
    result = benchmark_script(same, *paths, *OPTIONS, "--runs", 1, "--python", workers.python)
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "envkit calibrate ended with exit status 1" in result.stderr


def measured(path, *verdicts: tuple[str, float | None, float | None]) -> None:
    """Write a file of results with these verdicts and the ends of their intervals."""
    results = Results(path, {"machine": page.machine(), "budget_s": 20.0, "steps": 3})
    for run, (verdict, low, high) in enumerate(verdicts):
        known = (
            {"ratio": 1.0, "low": low, "high": high, "blocks": 9}
            if low
            else dict.fromkeys(("ratio", "low", "high", "blocks"))
        )
        results.append(
            "run", run=run, duration_s=1.0, verdict=verdict, blocks_with_interference=2, ended="budget used up", **known
        )


def test_verdicts_and_intervals_are_counted(paths, benchmark_script, tmp_path):
    verdicts = [
        ("faster", 1.01, 1.05), ("slower", 0.95, 0.99), ("no difference found", 0.9, 1.1),
        ("no difference larger than 2%", 0.99, 1.01), ("too few samples", None, None),
    ]  # fmt: skip
    measured(tmp_path / "s.jsonl", *verdicts)
    result = benchmark_script(same, *paths, *OPTIONS, "--runs", 5)
    assert result.stdout == f"written: {tmp_path}/page.md\n"  # nothing was left to measure
    text = (tmp_path / "page.md").read_text()
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


def test_results_of_other_settings_are_refused(paths, benchmark_script, tmp_path):
    measured(tmp_path / "s.jsonl")
    result = benchmark_script(same, *paths, "--steps", 4, "--budget", "20s")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "was measured with steps 3, and now it is 4" in result.stderr


def test_a_run_that_was_interrupted_is_gone_on_with(paths, workers, benchmark_script, tmp_path):
    options = (*paths, *OPTIONS, "--runs", 1, "--python", workers.python)
    benchmark_script(same, *options)
    record = tmp_path / "s" / "00" / FILE_NAME
    lines = record.read_text().splitlines(keepends=True)
    sample = next(number for number, line in enumerate(lines) if '"sample"' in line)
    record.write_text("".join(lines[: sample + 1]))  # as if it had been killed after its first sample
    (tmp_path / "s.jsonl").unlink()
    assert benchmark_script(same, *options).returncode == 0
    events = [json.loads(line)["event"] for line in record.read_text().splitlines()]
    assert (events.count("run"), events.count("resume"), events[-1]) == (1, 1, "end")
