"""How long a run is: budgets, the blocks that are planned for them, looks, and machines that change meanwhile."""

from __future__ import annotations

import json

import pytest

from runner.cli.measuring_options import BUDGET_S
from runner.engines import turns
from runner.engines.base import Outcome
from tests.instant_engine import Answered
from tests.records import spent
from tests.simulation import times


def test_the_reference_kernel_takes_no_more_than_an_eighth_of_the_readings(bench, simulation, instant, events):
    simulation.worker("baseline", seconds=[1.0, 3.0])
    assert bench("mine", "--budget", "80s").returncode == 0
    assert 6 <= len(events("reference-kernel")) <= 8


def test_a_machine_that_becomes_three_times_slower_still_gives_an_answer(bench, simulation, instant, events):
    """It ends with the blocks that there are, no more than 15% above the budget."""
    noisy = [1.0, 3.0, 1.5]
    simulation.worker("baseline", seconds=noisy)
    simulation.worker("mine", seconds=[2.0, 1.0, 3.0])
    instant.slower_after(20, 3.0)
    result = bench("mine", "--budget", "50s", "--json")
    document = json.loads(result.stdout)
    (found,) = document["comparisons"]
    assert (result.returncode, document["ended"]) == (0, "budget used up")
    assert 6 <= found["speedup"]["blocks"] < events("design")[0]["planned_blocks"]
    assert spent(events()) <= 50 * 1.15


def test_a_machine_that_is_ten_times_slower_gets_shorter_samples_and_an_answer(bench, simulation, instant, events):
    instant.takes_s = 10.0
    document = json.loads(bench("mine", "--budget", "4m", "--json").stdout)
    assert document["comparisons"][0]["speedup"]["blocks"] >= 6
    assert spent(events()) <= 240 * 1.15


@pytest.mark.parametrize("budget", ["10s", "0.01s"])
def test_a_budget_without_room_for_an_interval_is_refused_at_once(bench, instant, samples, events, budget):
    """The first starts take 2 s, and each block 3 s at first."""
    result = bench("mine", "--budget", budget)
    said = result.stderr.splitlines()[-1]
    assert result.returncode == 2
    assert said.startswith(f"envkit: --budget {budget} is too short: an interval takes 6 blocks, and so about 0.5 min")
    assert said.endswith("give --budget 0.5m")
    assert len(samples()) <= 4
    assert events()[-1]["reason"] == "the budget is too short"


def test_without_a_budget_the_run_goes_on_until_there_is_an_interval(cli, bench_arguments, instant, events):
    instant.takes_s = 60.0
    arguments = bench_arguments("mine")
    at = arguments.index("--blocks")
    result = cli(*arguments[:at], *arguments[at + 2 :])
    assert "an interval takes 6 blocks, and so about" in result.stderr
    assert "the run goes on until then" in result.stderr
    assert "sure     6 blocks (planned blocks measured)." in result.stdout
    assert spent(events()) > BUDGET_S


def test_where_workers_can_not_see_their_turn_they_start_one_after_the_other(
    bench, simulation, instant, samples, monkeypatch
):
    """As in an engine whose virtual machine has a temporary folder of its own."""

    class Blind(Answered):
        def wait(self):
            started.append(self.task)
            return Outcome("", "", 1.0, turns.UNREACHABLE)

    started = []
    monkeypatch.setattr(instant, "start", lambda task: Blind(instant, task))
    assert bench("mine").returncode == 0
    assert len(samples()) == 12
    assert len(started) == 2  # both of the first block, and none later


def test_one_arm_ten_times_as_fast_as_the_other(bench, simulation, instant):
    simulation.worker("mine", seconds=times(0.1))
    result = bench("mine", "--budget", "50s")
    assert "mine     10.000 (95% interval " in result.stdout
    assert "FASTER" in result.stdout


@pytest.mark.parametrize(
    ("seconds", "options", "blocks"),
    [
        (times(0.5), (), 12),
        (times(1), (), 12),
        ([1.0, 1.3, 0.8], (), 20),
        (times(0.5), ("--half-width", "0.1%"), 20),
    ],
    ids=["faster", "equal", "undecided", "not precise enough"],
)
def test_a_run_stops_early_at_a_look_only_and_only_when_it_is_decided(
    bench, simulation, instant, events, samples, seconds, options, blocks
):
    """The first starts take 2 s, a block 2 s, the reference kernel 1 s: 20 blocks are planned for 50 s after four.

    A large difference could be seen after 6 blocks; the looks are after 8, where the rate is too strict, and 12.
    """
    simulation.worker("mine", seconds=seconds)
    result = bench("mine", "--budget", "50s", "--json", *options)
    document = json.loads(result.stdout)
    (fixed,) = events("design")
    assert (result.returncode, fixed["planned_blocks"], fixed["looks"]) == (0, 20, [8, 12, 16, 20])
    assert sorted(samples()) == [(block, arm) for block in range(blocks) for arm in ("baseline", "mine")]
    assert document["comparisons"][0]["speedup"]["blocks"] == blocks
    assert document["ended"] == ("precise enough" if blocks < 20 else "planned blocks measured")
    assert document["design"] == {"planned": 20, "looks": [8, 12, 16, 20], "comparisons": 1}
    assert spent(events()) <= 50 * 1.15


@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_a_number_of_blocks_is_measured_however_long_they_take(bench, simulation, instant, samples, events, blocks):
    instant.takes_s = 1000.0
    simulation.worker("mine", seconds=times(0.5))
    document = json.loads(bench("mine", "--blocks", blocks, "--json").stdout)
    assert len(samples()) == 2 * blocks
    assert document["ended"] == "complete"
    assert [one["looks"] for one in events("design")] == [[blocks]] * (blocks >= 2)


def test_the_reference_alone(bench, instant, samples):
    result = bench("baseline", "--budget", "30s", "--json")
    assert result.returncode == 0
    document = json.loads(result.stdout)
    assert document["comparisons"] == []
    assert [one["arm"] for one in document["measured"]] == ["baseline"]
    assert samples() == [(block, "baseline") for block in range(24)]
