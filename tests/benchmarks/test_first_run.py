"""What is read of a first run's record, and the page that it makes."""

from __future__ import annotations

from benchmarks import first_run, page
from benchmarks.results import Results
from tests.records import BEGUN, run_events


def test_times_count_from_the_start_of_the_command_and_of_the_first_worker():
    run, *rest = run_events(blocks=3)
    warm_up = {"event": "warm-up", "time": BEGUN + 20, "worker_seconds": 5.0, "arm": "baseline"}
    for event in rest:
        event["time"] += 20
    rest[0]["arm"], rest[1]["arm"] = rest[1]["arm"], rest[0]["arm"]  # the order is random
    found = first_run.times([run, warm_up, *rest], BEGUN - 30)
    assert (found["setup_s"], found["first_ratio_s"]) == (45, 9)  # the first two samples take 2 s each
    of_baseline = [event["seconds"] for event in rest if event["event"] == "sample" and event["arm"] == "baseline"]
    assert found["step_ms"] == 1000 * sorted(of_baseline)[1] / 3


def test_the_page(benchmark_script, files, results_file, page_file):
    results = Results(results_file, {"machine": page.machine()})
    for case in first_run.CASES:
        results.append(
            "run", case=case, commit="abc1234", setup_s=40.2, first_ratio_s=12.0, total_s=281.0, step_ms=40.0,
            blocks=50, ratio=0.9, low=0.85, high=0.95, verdict="slower",
        )  # fmt: skip
    result = benchmark_script(first_run, *files)
    assert (result.returncode, result.stderr) == (0, "")
    row = "| alone | abc1234 | 40 s | 12 s | 281 s | 40 | 50 | 0.900 (0.850 to 0.950) | slower |"
    assert row in page_file.read_text()
