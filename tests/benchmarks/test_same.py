"""The baseline against itself: runs of the command with simulated workers, its file that only grows, and its page."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy
import pytest
from envkit.bench import record
from envkit.bench.record import FILE_NAME
from envkit.stats.verdict import Verdict

from benchmarks import same, same_page, script, short_runs
from benchmarks.errors import ScriptError
from benchmarks.results import append_line
from benchmarks.short_runs import Session
from tests.benchmarks.conftest import refusal

NAMES = ["baseline", "copy-1"]
HERE = Session(1.0, "0123abcd", "CPU A", 2, "6.1", NAMES, 12, [[0.05, 0.0505], [0.0502, 0.05]] * 8, [[], [1]] * 8)


@pytest.fixture
def records(tmp_path):
    return tmp_path / "records"


@pytest.fixture
def run(benchmark_script, simulation, instant, in_process, files, records):
    fixed = (*files, "--records", records, "--python", simulation.python, "--data", "synthetic", "--steps", 3)
    return lambda *options: benchmark_script(same, *fixed, "--for", "40s", *options)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_both_numbers_of_arms_are_measured_and_a_second_call_adds_to_the_file(run, results_file, page_file):
    result = run("--arms", "2,3")
    assert (result.returncode, result.stderr) == (0, "")
    first = results_file.read_bytes()
    two, three = lines(results_file)
    assert {len(block) for block in two["blocks"]} == {2}
    assert {len(block) for block in three["blocks"]} == {3}
    assert min(len(each["blocks"]) for each in (two, three)) >= 3
    assert two["steps"] == 3
    assert "## All that was measured" in page_file.read_text()
    assert run("--arms", "2").returncode == 0
    assert results_file.read_bytes().startswith(first)
    assert len(lines(results_file)) == 3


def test_a_run_that_fails_ends_it_with_one_line(run, simulation):
    simulation.worker("baseline", does="exit", status=3)
    assert "envkit bench ended with exit status 1" in refusal(run())


def test_blocks_of_an_interrupted_run_are_kept_and_the_next_call_goes_on(run, results_file, records, monkeypatch):
    def interrupted(*words, **options):
        document = measure(*words, **options)
        (path,) = records.glob(f"*-arms-*/{FILE_NAME}")
        events = path.read_text().splitlines(keepends=True)
        samples = [number for number, line in enumerate(events) if '"sample"' in line]
        path.write_text("".join(events[: samples[4] + 1]))  # the third block has one of two samples
        assert document
        raise KeyboardInterrupt

    measure = script.runner
    monkeypatch.setattr(script, "runner", interrupted)
    result = run("--arms", "2")
    assert (result.returncode, result.stderr) == (130, "same: interrupted; the same command goes on\n")
    assert [len(line["blocks"]) for line in lines(results_file)] == [2]
    monkeypatch.setattr(script, "runner", measure)
    assert run("--arms", "3").returncode == 0
    assert [len(line["blocks"][0]) for line in lines(results_file)] == [2, 3]


def test_runs_of_a_call_that_was_killed_are_collected_once(run, results_file):
    run("--arms", "2")
    kept = results_file.read_bytes()
    results_file.unlink()
    assert run("--add").returncode == 0
    assert results_file.read_bytes() == kept
    assert run("--add").returncode == 0
    assert results_file.read_bytes() == kept


def test_a_run_that_still_goes_on_is_left_to_its_own_call(run, results_file, records):
    run("--arms", "2")
    kept = results_file.read_bytes()
    results_file.unlink()
    (folder,) = (path.parent for path in records.glob(f"*-arms-*/{FILE_NAME}"))
    with record.Record.reopen(folder):
        assert run("--add").returncode == 0
        assert not results_file.exists()
    assert run("--add").returncode == 0
    assert results_file.read_bytes() == kept


def test_a_run_of_another_profile_is_refused(run, cli, write_profile, simulation, records, results_file):
    folder = records / "other"
    options = ("--python", simulation.python, "--data", "synthetic", "--steps", 3, "--budget", "20s")
    cli("bench", write_profile("mine", "env: {A: '1'}\n"), *options, "--output", folder)
    assert "does not measure the baseline against itself" in refusal(run("--add", folder, "--commit", "0123abcd"))
    assert "--add: needs --commit HASH" in refusal(run("--add", folder))
    assert not results_file.exists()


def test_half_a_line_is_left_out_and_makes_room(results_file):
    append_line(results_file, HERE.to_json())
    complete = results_file.read_bytes()
    results_file.write_bytes(complete + complete[:40])
    assert same.read(results_file) == [HERE]
    other = replace(HERE, began=2.0, cpu="CPU B")
    append_line(results_file, other.to_json())
    assert results_file.read_bytes().startswith(complete)
    assert same.read(results_file) == [HERE, other]


@pytest.mark.parametrize("damage", ['{"began": 1}', "[]", '"', '{"began": 1, "blocks": [[0.1, 0]]}'])
def test_a_damaged_line_amid_others_is_refused_with_its_number(results_file, damage):
    append_line(results_file, HERE.to_json())
    results_file.write_text(results_file.read_text() + damage + "\n")
    with pytest.raises(ScriptError, match="line 2 is not a run of"):
        same.read(results_file)


@pytest.mark.parametrize(
    "change", [{"blocks": []}, {"names": ["baseline"]}, {"blocks": [[0.1, 0.0]] * 16}, {"disturbed": []}]
)
def test_blocks_that_do_not_fit_are_refused(change):
    with pytest.raises(ValueError, match="block"):
        Session.from_json(replace(HERE, **change).to_json())


def test_short_runs_are_judged_as_real_ones():
    slower = [[0.05, 0.06 + 0.0001 * number] for number in range(8)]
    (speedup,) = short_runs.judge(slower)
    assert speedup.verdict == Verdict.SLOWER
    counts = short_runs.count([HERE, replace(HERE, blocks=slower)], 8)
    assert (counts.runs, counts.undecided, counts.claimed, counts.covered) == (3, 0, 1, 2)
    assert short_runs.count([HERE], 20).runs == 0


def test_blocks_of_several_calls_are_joined_in_their_order_on_one_machine():
    """Two calls of 16 blocks fill a run of 20, whatever their commits; the rest waits for the next call."""
    later = replace(HERE, began=2.0, commit="aaaabbbb")
    assert short_runs.count([later, HERE], 20).runs == 1
    slower = [[0.05, 0.06 + 0.0001 * number] for number in range(16)]
    counts = short_runs.count([replace(later, blocks=slower), HERE], 16)
    assert (counts.runs, counts.claimed) == (2, 1)
    for change in ({"cpu": "CPU B"}, {"usable_cpus": 4}, {"kernel": "6.2"}):
        assert short_runs.count([replace(later, **change), HERE], 20).runs == 0


def test_runs_of_too_few_blocks_for_their_arms_are_undecided_and_not_right():
    """With 8 arms a comparison may miss in 0.7% of runs; 8 blocks have no interval as sure as that."""
    names = ["baseline", *(f"copy-{number}" for number in range(1, 8))]
    blocks = numpy.random.default_rng(1).lognormal(-3, 0.1, (24, 8)).tolist()
    session = replace(HERE, names=names, blocks=blocks, disturbed=[[]] * 24)
    counts = short_runs.count([session], 8)
    assert (counts.runs, counts.undecided, counts.claimed, counts.covered) == (3, 3, 0, 0)
    assert short_runs.count([session], 20).undecided == 0
    assert "| CPU A, 2 CPUs | 8 | 8 | 0.3 | 3 | 3 | 0 | - | 0 of 0 | 0 | - | - |" in "\n".join(
        same_page.parts([session])
    )


def test_arms_make_pairs_that_share_no_sample():
    session = replace(HERE, names=["a", "b", "c", "d", "e"], blocks=[[1.0, 2.0, 3.0, 4.0, 5.0]], disturbed=[[0, 3, 4]])
    first, second = session.pairs()
    assert (first.names, first.blocks, first.disturbed) == (["a", "b"], [[1.0, 2.0]], [[0]])
    assert (second.names, second.blocks, second.disturbed) == (["c", "d"], [[3.0, 4.0]], [[1]])
    assert HERE.pairs() == [HERE]


def test_the_rate_of_wrong_runs_does_not_hang_on_where_the_first_begins():
    """Eight slower blocks are a run of 8 for one start of four; runs of other starts have far noisier blocks too."""
    equal = [[0.05, 0.08], [0.08, 0.05]] * 4
    slower = [[0.05, 0.06 + 0.0001 * number] for number in range(8)]
    session = replace(HERE, blocks=[*equal, *slower, *equal], disturbed=[[]] * 24)
    assert short_runs.count([session], 8).claimed == 1
    assert short_runs.rate_of_any_start([session], 8) == pytest.approx(1 / 9)
    assert short_runs.rate_of_any_start([session], 45) is None


def test_short_runs_stop_at_a_look_as_real_ones_do():
    slower = [[0.05, 0.06 + 0.0001 * (number % 5)] for number in range(45)]
    (speedup,) = short_runs.judge(slower)
    assert (speedup.verdict, speedup.blocks) == (Verdict.SLOWER, 14)
    equal = numpy.random.default_rng(1).lognormal(-3, 0.2, (45, 2)).tolist()
    (speedup,) = short_runs.judge(equal)
    assert (speedup.verdict, speedup.blocks) == (Verdict.NOT_FOUND, 45)


def test_with_many_arms_one_wrong_comparison_makes_a_run_wrong():
    blocks = [[0.05 + 0.001 * (number % 2), *[0.0505] * 5, 0.08 + 0.0001 * number] for number in range(8)]
    speedups = short_runs.judge(blocks)
    assert [speedup.verdict == Verdict.SLOWER for speedup in speedups] == [False] * 5 + [True]
    counts = short_runs.count([replace(HERE, names=["a"] * 7, blocks=blocks * 2, disturbed=[[]] * 16)], 8)
    assert (counts.runs, counts.claimed, counts.covered) == (2, 2, 0)


def test_the_page_counts_by_host_and_lists_every_run():
    text = "\n".join(same_page.parts([HERE, replace(HERE, began=90000.0, cpu="CPU B", commit="aaaabbbb")]))
    for row in (
        "| all | 2 | 8 | 0.5 | 4 | 0 | 0 | 52.7% | 4 of 4 |",
        "| CPU A, 2 CPUs | 2 | 8 | 0.5 | 2 | 0 | 0 | 77.6% | 2 of 2 |",
        "| CPU A, 2 CPUs | 2 | 20 | 1.2 | 0 | 0 | 0 | - | 0 of 0 |",
        "| 1970-01-02 01:00 | aaaabbbb | CPU B | 2 | 6.1 | 2 | 12 | 16 | 8 | 50.1 ms |",
    ):
        assert row in text
    assert same_page.parts([])[0].endswith("Nothing is measured yet.")


def test_bounds_are_those_of_the_literature():
    assert same_page.upper_bound(0, 20) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert same_page.runs_needed() == 179
