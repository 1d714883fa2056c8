"""Entries are measured in blocks, one that fails is left out with its reason, and differences are told from none."""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence

import pytest
from envkit import engines
from envkit.common.errors import InputError
from envkit.common.machine_lock import machine_lock
from envkit.common.running_messages import Locked
from envkit.stats.verdict import Verdict

from benchmarks import interleaved
from benchmarks.interleaved import Bench, Entry
from benchmarks.results import Results
from tests.simulation import times


def entry(name: str, simulated: str | None = None, problems=lambda evidence, printed: []) -> Entry:
    return Entry(name, {"SIMULATED": simulated or name}, (), problems)


@pytest.fixture
def measured(simulation, instant_bench, results_file):
    """Measure entries in so many blocks, and return the results."""

    def run(*entries: Entry, blocks: int = 2, references: Sequence[str] = ()) -> Results:
        parser = argparse.ArgumentParser()
        interleaved.add_options(parser, blocks)
        arguments = parser.parse_args(["--python", str(simulation.python), "--data", "synthetic", "--steps", "3"])
        bench = Bench(arguments)
        results = Results(results_file, bench.settings(entries, bench.inspection([])))
        interleaved.run(bench, results, entries, references)
        return results

    return run


def test_each_block_has_each_entry_once(measured, simulation):
    results = measured(entry("one"), entry("two"), blocks=3)
    assert [line["block"] for line in results.of("sample", entry="one")] == [0, 1, 2]
    names = [start["name"] for start in simulation.starts()]
    assert [sorted(names[first : first + 2]) for first in (0, 2, 4)] == [["one", "two"]] * 3
    assert len({start["environment"]["ENVKIT_PADDING"] for start in simulation.starts()}) == 6


def test_it_goes_on_with_the_blocks_that_there_are(measured, simulation, results_file):
    measured(entry("one"), blocks=3)
    results_file.write_text("".join(results_file.read_text().splitlines(keepends=True)[:-1]))
    results = measured(entry("one"), blocks=3)
    assert [line["block"] for line in results.of("sample")] == [0, 1, 2]
    assert len(simulation.starts()) == 4


def test_blocks_are_not_added_after_a_look_at_what_came_out(measured):
    measured(entry("one"), blocks=1)
    with pytest.raises(InputError, match=r"r\.jsonl: was measured with blocks 1, and now it is 3; move the file"):
        measured(entry("one"), blocks=3)


def test_entries_that_are_not_what_they_were_are_not_mixed(measured):
    measured(entry("one"), entry("two"))
    with pytest.raises(InputError, match=r"r\.jsonl: was measured with other entries: two; move the file"):
        measured(entry("one"), entry("two", simulated="three"))


def test_leftovers_are_removed_first_and_the_machine_is_held(measured, monkeypatch):
    held = []

    def removing():
        with pytest.raises(InputError, match=Locked.code), machine_lock():
            pass
        held.append("removed")

    monkeypatch.setattr(engines, "remove_leftovers", removing)
    measured(entry("one"))
    assert held == ["removed"]


def test_what_disturbs_a_sample_from_outside_is_kept_and_told(measured, simulation):
    busy = {"worker_cpus": 4, "worker_cpus_busy_s": 100.0, "worker_cpus_steal_s": 0.0}
    simulation.worker("two", seconds=times(0.8), usage=busy)
    results = measured(entry("one"), entry("two"), blocks=8)
    assert {bool(line["interference"]) for line in results.of("sample", entry="two")} == {True}
    assert not any(line["interference"] for line in results.of("sample", entry="one"))
    text = "\n".join(interleaved.interference(results, [("one", "two")], 1))
    assert "8 of 8 blocks were disturbed from outside (most often: other programs used its CPUs), in 8 samples" in text
    assert "**Most blocks were disturbed" in text
    assert "| too few blocks |" in text


def test_what_fails_is_left_out_and_says_why(measured, simulation, capsys):
    simulation.worker("bad", does="exit", status=3, stderr="no memory", **{"from": 1})
    results = measured(entry("good"), entry("bad"), blocks=3)
    assert len(results.of("sample", entry="good")) == 3
    assert len(results.of("sample", entry="bad")) == 1
    assert interleaved.failure(results, "bad") == "the worker ended with exit status 3: no memory"
    assert "bad: left out: the worker ended with exit status 3" in capsys.readouterr().out


def test_what_is_not_in_effect_is_left_out(measured):
    other = entry("asked", problems=lambda evidence, printed: ["its allocator is glibc, not jemalloc"])
    results = measured(other)
    assert not results.of("sample", entry="asked")
    assert interleaved.failure(results, "asked") == "its allocator is glibc, not jemalloc"
    with pytest.raises(InputError, match="asked could not be measured: its allocator is glibc"):
        measured(other, references=["asked"])


def test_what_prints_no_sample_is_left_out(measured, simulation):
    simulation.worker("odd", does="print", text="hello", stderr="")
    assert interleaved.failure(measured(entry("odd")), "odd") == "the worker printed no sample: nothing"


def test_a_difference_is_found_with_its_size(measured, simulation):
    simulation.worker("slow", seconds=times(1.25))
    found = interleaved.compared(measured(entry("slow"), entry("baseline"), blocks=8), "slow", "baseline", 1)
    assert found is not None
    assert found.low < 1.25 < found.high
    assert found.verdict == Verdict.FASTER


@pytest.fixture
def results_with(results_file):
    """Results of entries with these times, in the order of the blocks."""

    def make(**seconds: list[float]) -> Results:
        made = Results(results_file, {})
        for name, of_entry in seconds.items():
            for block, second in enumerate(of_entry):
                made.append("sample", entry=name, block=block, seconds=second, losses=[2.0, 1.0], interference=[])
        return made

    return make


def test_ratios_are_given_without_the_disturbed_blocks_too(results_with):
    slow = [2.01, 2.0, 1.99, 2.02, 1.98, 2.0, 2.01, 2.0]
    results = results_with(one=slow, two=[*[1.0] * 7, 9.0], three=[1.0] * 8)
    results.of("sample", entry="two", block=7)[0]["interference"].append("stolen")
    assert interleaved.compared(results, "one", "two", 1, without_interference=True).blocks == 7
    text = "\n".join(interleaved.interference(results, [("one", "two"), ("one", "three")], 1))
    assert "1 of 8 blocks was disturbed from outside (most often: the hypervisor withheld CPU time)" in text
    assert "Most blocks" not in text
    (row,) = [line for line in text.splitlines() if line.startswith("| two | one |")]
    assert row.endswith(" | 7 |")
    assert "2.0" in row.split("|")[5]
    assert "| three |" not in text


def test_a_run_that_nothing_disturbed_says_so(results_with):
    results = results_with(one=[1.0] * 8, two=[1.0] * 8)
    parts = interleaved.interference(results, [("one", "two")], 1)
    assert parts[1:] == ["By the rule of `envkit bench`, no interference was detected in 8 blocks."]


def test_more_comparisons_have_wider_intervals(results_with):
    draw = random.Random(1)
    results = results_with(**{name: [draw.gauss(1, 0.02) for _ in range(16)] for name in ("one", "two")})
    single, many = (interleaved.compared(results, "one", "two", number) for number in (1, 30))
    assert many.low < single.low < single.high < many.high


def test_too_few_blocks_give_no_interval(results_with):
    assert interleaved.compared(results_with(one=[1.0, 1.0], two=[1.0, 1.0]), "one", "two", 1) is None
    assert interleaved.interval(None) == "too few blocks"


def test_losses_are_compared_as_shares(results_with):
    results = results_with(one=[1.0], two=[1.0])
    results.append("sample", entry="three", block=0, seconds=1.0, losses=[2.0, 1.05])
    assert interleaved.loss_difference(results, "one", "two") == 0
    assert interleaved.loss_difference(results, "one", "three") == pytest.approx(0.05)
    assert interleaved.losses_agree(0.0)
    assert not interleaved.losses_agree(0.05)
    assert not interleaved.losses_agree(None)


def test_a_loss_that_is_no_number_is_a_difference(results_with):
    results = results_with(one=[1.0])
    results.append("sample", entry="two", block=0, seconds=1.0, losses=[2.0, math.nan])
    assert not interleaved.losses_agree(interleaved.loss_difference(results, "one", "two"))


def test_what_failed_in_the_middle_is_told_with_the_blocks_it_has(results_with):
    results = results_with(one=[1.0], two=[1.0])
    results.append("failure", entry="two", problem="the worker was killed")
    said = ["## Failed", "- two: the worker was killed (after 1 block)"]
    assert interleaved.failures(results, ["one", "two"]) == said
    assert interleaved.failures(results, ["one"]) == []
