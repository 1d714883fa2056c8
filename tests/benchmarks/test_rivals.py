"""How three tools' answers are read and counted, and that each of them is really asked."""

from __future__ import annotations

import os
import random
import shutil
import statistics
from contextlib import nullcontext
from dataclasses import replace

import pytest
from envkit.common.errors import InputError
from scipy import stats

from benchmarks import neighbour, rivals, tools
from benchmarks.tools import Answer, Cost, Reading, ToolFailed

COST = Cost(run_s=0.25, pyperf_process_s=0.5)


@pytest.mark.parametrize(
    ("verdict", "truth", "worth"),
    [
        ("faster", 0, "wrong"),
        ("slower", 0, "wrong"),
        ("no difference found", 0, "quiet"),
        ("no difference larger than 2%", 0, "excluded"),
        ("slower", 3, "found"),
        ("faster", 3, "wrong"),
        ("no difference found", 3, "missed"),
        ("no difference larger than 2%", 3, "wrong"),
        ("no difference larger than 5%", 3, "missed"),
    ],
)
def test_what_a_verdict_is_worth(verdict, truth, worth):
    assert rivals.outcome(verdict, truth) == worth


@pytest.mark.parametrize(
    ("ratio", "deviation", "one_sigma", "two_sigma"),
    [
        (1.05, 0.02, "faster", "faster"),
        (1.05, 0.03, "faster", "no difference found"),
        (1 / 1.05, 0.03, "slower", "no difference found"),
        (1.05, 0.06, "no difference found", "no difference found"),
    ],
)
def test_hyperfine_finds_what_is_further_off_than_its_error(ratio, deviation, one_sigma, two_sigma):
    readings = [tools.hyperfine_reading(ratio, deviation, sigmas) for sigmas in (1, 2)]
    assert [reading.verdict for reading in readings] == [one_sigma, two_sigma]
    for reading in readings:
        assert reading.low < ratio < reading.high
        assert (reading.low <= 1 <= reading.high) == (reading.verdict == "no difference found")


def test_an_error_as_large_as_the_ratio_bounds_nothing():
    reading = tools.hyperfine_reading(1.1, 0.6, 2)
    assert (reading.verdict, reading.low, reading.high) == ("no difference found", None, None)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("Mean +- std dev: [a] 64.6 ms +- 3.8 ms -> [b] 60.2 ms +- 0.5 ms: 1.07x faster", "faster"),
        ("Mean +- std dev: [a] 60.2 ms +- 0.5 ms -> [b] 64.6 ms +- 3.8 ms: 1.07x slower", "slower"),
        ("Benchmark hidden because not significant (1): command", "no difference found"),
    ],
)
def test_what_pyperf_says_is_understood(said, verdict):
    assert tools.pyperf_verdict(said) == verdict


def test_what_is_not_understood_is_no_verdict():
    with pytest.raises(ToolFailed, match="printed 'Segmentation fault'"):
        tools.pyperf_verdict("Segmentation fault\n")


def test_pyperfs_interval_holds_1_exactly_where_its_test_finds_nothing():
    draw = random.Random(1)
    found = set()
    for _ in range(200):
        first, second = ([draw.gauss(mean, 0.1) for _ in range(8)] for mean in (1.0, 1.1))
        low, high = tools.t_interval(first, second)
        significant = stats.ttest_ind(first, second).pvalue < 0.05
        assert significant == (not low <= 1 <= high)
        found.add(significant)
    assert found == {True, False}


def test_times_that_vary_so_much_that_no_speedup_is_too_large():
    low, high = tools.t_interval([1.0, 2.0], [0.5, 9.0])
    assert 0 < low < 1
    assert high is None


def test_the_runs_fit_the_budget():
    assert COST.hyperfine_runs(12) == 23  # and one to warm up: 2 x 24 x 0.25 s
    assert COST.pyperf_processes(12) == 4  # of 0.5 s and 4 runs: 2 x 4 x 1.5 s
    assert (COST.hyperfine_runs(0.1), COST.pyperf_processes(0.1)) == (2, 2)


@pytest.fixture
def question(tmp_path, monkeypatch):
    """A question with little work, so that it is answered at once: the second command does eight times as much."""
    monkeypatch.setattr(tools, "WORK", 0.05)
    monkeypatch.setattr(tools, "PYPERF_VALUES", 2)
    return tools.more_work(tmp_path, 7.0, 8.0, COST)


def test_the_kit_is_asked(question):
    answer = tools.envkit(question)
    assert [reading.name for reading in answer.readings] == ["envkit"]
    assert len(answer.times[0]) == len(answer.times[1]) > 0
    first, second = map(statistics.median, answer.times)  # a busy machine slows single runs down
    assert second > 2 * first


def test_where_the_kit_has_no_time_for_an_answer_that_counts(question):
    answer = tools.envkit(replace(question, budget_s=0.1))
    assert [reading.verdict for reading in answer.readings] == [tools.TOO_SHORT]
    assert rivals.outcome(tools.TOO_SHORT, 3) == "missed"


@pytest.mark.skipif(shutil.which("hyperfine") is None, reason="hyperfine is not installed")
def test_hyperfine_is_asked(question):
    answer = tools.hyperfine(question)
    assert [reading.name for reading in answer.readings] == ["hyperfine, 1 sigma", "hyperfine, 2 sigma"]
    assert sum(answer.times[1]) > sum(answer.times[0])


def test_pyperf_is_asked(tmp_path, monkeypatch):
    """With enough work that starting Python, which a busy machine slows down, is the smaller part."""
    monkeypatch.setattr(tools, "WORK", 0.5)
    monkeypatch.setattr(tools, "PYPERF_VALUES", 2)
    answer = tools.pyperf(replace(tools.more_work(tmp_path, 7.0, 8.0, COST), budget_s=0.1))
    assert [len(times) for times in answer.times] == [4, 4]
    assert sum(answer.times[1]) > sum(answer.times[0])


def test_a_tool_that_fails_says_why(question, monkeypatch):
    with pytest.raises(ToolFailed, match="exit status"):
        tools.pyperf(replace(question, first=["false"], budget_s=0.1))


def test_a_missing_rival_is_refused_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="apt-get install hyperfine"):
        tools.require()


def answering(name: str, verdict: str, low: float, high: float):
    return lambda question: Answer([Reading(name, verdict, low, high)], [[1.0], [1.0]])


@pytest.fixture
def pretended(monkeypatch):
    """Tools that answer at once, always the same: the kit finds nothing, pyperf always finds it slower."""
    monkeypatch.setattr(tools, "TOOLS", {
        "envkit": answering("envkit", "no difference found", 0.95, 1.05),
        "pyperf": answering("pyperf", "slower", 0.96, 0.98),
    })  # fmt: skip
    monkeypatch.setattr(tools, "require", lambda: None)
    monkeypatch.setattr(tools, "versions", lambda: {"hyperfine": "1", "pyperf": "2"})
    monkeypatch.setattr(tools, "look", lambda folder, seconds, command: COST)


@pytest.fixture
def run(pretended, benchmark_script, files):
    """Run the benchmark with tools that answer at once, with no neighbour unless one is asked for."""
    return lambda *options: benchmark_script(rivals, *files, "--neighbour", "off", *options)


def cells(page: str, section: str, tool: str) -> list[str]:
    """The cells of a tool's row in the first table after a heading."""
    rows = page.partition(f"## {section}\n")[2].partition("\n## ")[0].splitlines()
    return next([cell.strip() for cell in row.split("|")[1:-1]] for row in rows if row.startswith(f"| {tool}"))


def test_the_page_counts_wrong_found_and_missed(run, page_file):
    result = run("--trials", 4)
    assert (result.returncode, result.stderr) == (0, "")
    assert "16/16  neighbour off" in result.stdout
    page = page_file.read_text()
    assert cells(page, "No neighbour, the same work", "pyperf")[1:4] == ["4 of 4 (40% to 100%)", "-", "±1.0%"]
    assert cells(page, "No neighbour, the same work", "envkit")[1:4] == ["0 of 4 (0% to 60%)", "0 of 4", "±5.0%"]
    assert cells(page, "No neighbour, 3% more work", "pyperf")[1:4] == ["0 of 4 (0% to 60%)", "4 of 4", "0"]
    assert cells(page, "No neighbour, 3% more work", "envkit")[1:4] == ["0 of 4 (0% to 60%)", "0 of 4", "4"]
    assert cells(page, "All together", "pyperf")[1:3] == ["4 of 8 (16% to 84%)", "4 of 4"]
    assert "pyperf found it more often (4 times, and the kit 0)" in page
    assert "pyperf's intervals are narrower (±1.0%, and the kit: ±5.0%)" in page


def test_more_trials_go_on_with_those_that_there_are(run, page_file):
    assert run("--truths", 3, "--trials", 1).stdout.count("neighbour off") == 2
    assert run("--truths", 3, "--trials", 3).stdout.count("neighbour off") == 4
    assert cells(page_file.read_text(), "All together", "envkit")[2] == "0 of 3"


def test_a_trial_that_failed_is_on_the_page(run, monkeypatch, page_file):
    def fail(question):
        raise ToolFailed("it broke")

    monkeypatch.setitem(tools.TOOLS, "pyperf", fail)
    run("--truths", 3, "--trials", 1)
    assert "it broke" in page_file.read_text().partition("## Trials that failed")[2]


def test_each_tool_meets_the_same_neighbour(run, monkeypatch):
    seeds = []
    monkeypatch.setattr(neighbour, "running", lambda seed, seconds: seeds.append(seed) or nullcontext())
    run("--truths", 3, "--trials", 2, "--neighbour", "on")
    assert seeds.pop(0) == "look"
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_trials_on_cpus_of_their_own(run, page_file):
    cpus = len(os.sched_getaffinity(0))
    result = run("--at-once", cpus + 1)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].endswith(f"--at-once {cpus + 1}: there are {cpus} usable CPUs")
    if cpus > 1:
        assert run("--truths", 3, "--trials", 4, "--at-once", 2).returncode == 0
        page = page_file.read_text()
        assert "2 trials at once, each on a CPU of its own" in page
        assert cells(page, "All together", "pyperf")[2] == "4 of 4"
    assert len(os.sched_getaffinity(0)) == cpus  # this process was bound to none of them


def test_nonsense_for_truths_is_refused(benchmark_script):
    result = benchmark_script(rivals, "--truths", "0,much")
    assert result.returncode == 2
    assert "'0,much' are not percentages" in result.stderr
