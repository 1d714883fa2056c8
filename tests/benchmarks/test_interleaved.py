"""Entries are measured in blocks, one that fails is left out with its reason, and differences are told from none."""

from __future__ import annotations

import argparse
import random

import pytest

from benchmarks import interleaved
from benchmarks.interleaved import Bench, Entry
from benchmarks.results import Results
from runner.errors import InputError
from tests.simulation import times


def entry(name: str, simulated: str | None = None, problems=lambda evidence, printed: []) -> Entry:
    return Entry(name, {"SIMULATED": simulated or name}, (), problems)


@pytest.fixture
def measured(simulation, tmp_path):
    """Measure entries in so many blocks, and return the results."""

    def run(*entries: Entry, blocks: int = 2) -> Results:
        parser = argparse.ArgumentParser()
        interleaved.add_options(parser, blocks)
        arguments = parser.parse_args(["--python", str(simulation.python), "--data", "synthetic", "--steps", "3"])
        bench = Bench(arguments)
        results = Results(tmp_path / "results.jsonl", bench.settings)
        interleaved.measure(bench, results, entries)
        return results

    return run


def test_each_block_has_each_entry_once(measured, simulation):
    results = measured(entry("one"), entry("two"), blocks=3)
    assert [line["block"] for line in results.of("sample", entry="one")] == [0, 1, 2]
    names = [start["name"] for start in simulation.starts()]
    assert [sorted(names[first : first + 2]) for first in (0, 2, 4)] == [["one", "two"]] * 3
    assert len({start["environment"]["ENVKIT_PADDING"] for start in simulation.starts()}) == 6


def test_more_blocks_go_on_with_those_that_there_are(measured, simulation):
    measured(entry("one"), blocks=1)
    measured(entry("one"), blocks=3)
    assert len(simulation.starts()) == 3


def test_what_fails_is_left_out_and_says_why(measured, simulation, capsys):
    simulation.worker("bad", does="exit", status=3, stderr="no memory", **{"from": 1})
    results = measured(entry("good"), entry("bad"), blocks=3)
    assert len(results.of("sample", entry="good")) == 3
    assert len(results.of("sample", entry="bad")) == 1
    assert interleaved.failure(results, "bad") == "the worker ended with exit status 3: no memory"
    assert "bad: left out: the worker ended with exit status 3" in capsys.readouterr().out


def test_what_is_not_in_effect_is_left_out(measured):
    results = measured(entry("asked", problems=lambda evidence, printed: ["its allocator is glibc, not jemalloc"]))
    assert not results.of("sample", entry="asked")
    assert interleaved.failure(results, "asked") == "its allocator is glibc, not jemalloc"
    with pytest.raises(InputError, match="asked could not be measured: its allocator is glibc"):
        interleaved.require_samples(results, "asked")


def test_what_prints_no_sample_is_left_out(measured, simulation):
    simulation.worker("odd", does="print", text="hello", stderr="")
    assert interleaved.failure(measured(entry("odd")), "odd") == "the worker printed no sample: nothing"


def test_a_difference_is_found_with_its_size(measured, simulation):
    simulation.worker("slow", seconds=times(1.25))
    found = interleaved.compared(measured(entry("slow"), entry("baseline"), blocks=8), "slow", "baseline", 1)
    assert found is not None
    assert found.low < 1.25 < found.high
    assert found.verdict == "faster"


def results_with(path, **seconds: list[float]) -> Results:
    """Results of entries with these times, in the order of the blocks."""
    made = Results(path, {})
    for name, of_entry in seconds.items():
        for block, second in enumerate(of_entry):
            made.append("sample", entry=name, block=block, seconds=second, losses=[2.0, 1.0])
    return made


def test_more_comparisons_have_wider_intervals(tmp_path):
    draw = random.Random(1)
    noisy = {name: [draw.gauss(1, 0.02) for _ in range(16)] for name in ("one", "two")}
    results = results_with(tmp_path / "results.jsonl", **noisy)
    single, many = (interleaved.compared(results, "one", "two", number) for number in (1, 30))
    assert many.low < single.low < single.high < many.high


def test_too_few_blocks_give_no_interval(tmp_path):
    results = results_with(tmp_path / "results.jsonl", one=[1.0, 1.0], two=[1.0, 1.0])
    assert interleaved.compared(results, "one", "two", 1) is None
    assert interleaved.interval(None) == "too few blocks"


def test_losses_are_compared_as_shares(tmp_path):
    results = results_with(tmp_path / "results.jsonl", one=[1.0], two=[1.0])
    results.append("sample", entry="three", block=0, seconds=1.0, losses=[2.0, 1.05])
    assert interleaved.loss_difference(results, "one", "two") == 0
    assert interleaved.loss_difference(results, "one", "three") == pytest.approx(0.05)
    assert interleaved.losses_agree(0.0)
    assert not interleaved.losses_agree(0.05)
    assert not interleaved.losses_agree(None)
