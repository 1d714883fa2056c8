"""The measuring loop, going on with a run that was interrupted; with instant workers."""

from __future__ import annotations

import statistics

import pytest

from tests import records
from tests.records import spent
from tests.simulation import times


def interrupted(bench, simulation, name, *options, after=0):
    """Measure, and be interrupted by Ctrl-C at the start of a worker; how it behaved before is restored."""
    simulation.worker(name, does="interrupt", seconds=times(0.5), **{"from": after})
    assert bench("mine", *options).returncode == 130
    simulation.worker(name, seconds=times(0.5))


@pytest.mark.parametrize("name", ["mine warming", "reference-kernel", "mine"])
def test_interrupted_at_its_beginning_and_resumed(bench, simulation, instant, cli, run_folder, samples, events, name):
    interrupted(bench, simulation, name)
    assert events()[-1]["reason"] == "interrupted"
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert sorted(samples()) == [(block, arm) for block in range(6) for arm in ("baseline", "mine")]
    assert [one["block"] for one in events("reference-kernel")] == list(range(6))


def test_a_resumed_run_warms_again_but_keeps_its_reference_kernel_and_its_looks(
    bench, simulation, instant, cli, run_folder, samples, events
):
    interrupted(bench, simulation, "mine", "--budget", "62s", after=5)
    before, (fixed,) = samples(), events("design")
    assert before[-1][0] in (4, 5)
    instant.takes_s = 0.5
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert events("design") == [fixed]
    assert [one["arm"] for one in events("warm-up")] == ["baseline", "mine"] * 2
    blocks = [block for block, _ in samples()]
    readings = [one["block"] for one in events("reference-kernel")]
    assert readings == sorted(set(readings) & set(blocks))
    assert samples()[: len(before)] == before
    assert len(set(samples())) == len(samples())
    assert len(set(blocks)) in fixed["looks"]


def test_after_an_interruption_the_reference_kernel_is_read_again(bench, simulation, instant, cli, run_folder, events):
    interrupted(bench, simulation, "mine", "--budget", "4m", after=3)
    assert cli("bench", "--resume", run_folder).returncode == 0
    kinds = [event["event"] for event in events()]
    resumed = kinds.index("resume")
    later = events()[resumed : resumed + kinds[resumed:].index("reference-kernel") + 1]
    assert sum(event["event"] == "sample" for event in later) <= 2  # what was missing of the block that was begun


def test_a_run_that_a_version_without_paces_began_is_gone_on_with(bench, simulation, instant, cli, run_folder, events):
    interrupted(bench, simulation, "reference-kernel")
    kept = [event for event in events() if event["event"] != "lengths"]
    for event in kept:
        if event["event"] == "warm-up":
            del event["step_s"], event["peak_memory_bytes"]
    records.write(run_folder, kept)
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert len(events("lengths")) == 1


def test_what_was_spent_before_an_interruption_counts(bench, simulation, instant, cli, run_folder, events):
    simulation.worker("baseline", seconds=[1.0, 3.0])
    interrupted(bench, simulation, "mine", "--budget", "62s", "--half-width", "0.1%", after=10)
    simulation.worker("mine", seconds=[1.0, 1.0, 3.0], does="exit", status=3, **{"from": 15})
    assert cli("bench", "--resume", run_folder).returncode == 1
    simulation.worker("mine", seconds=[1.0, 1.0, 3.0])
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert "(planned blocks measured)" in cli("report", run_folder, "--details").stdout
    assert [event["worker_seconds"] for event in events("failure")] == [pytest.approx(1.0, abs=0.1)]
    assert 62 - 4 < spent(events()) <= 62 * 1.15


def test_resuming_a_complete_run_starts_nothing(bench, simulation, instant, cli, run_folder, events):
    assert bench("mine").returncode == 0
    before = events()
    simulation.worker("mine warming", does="exit", status=3)
    simulation.worker("mine", does="exit", status=3)
    assert cli("bench", "--resume", run_folder).returncode == 0
    assert [event["event"] for event in events()[len(before) :]] == ["resume", "end"]


def test_a_worker_that_failed_costs_its_time_once(bench, simulation, instant, cli, run_folder, events):
    """And not once more in each of the blocks that the budget is thought to have room for."""
    simulation.worker("mine", seconds=times(0.5), does="exit", status=3, **{"from": 1})
    instant.takes_s = 20.0
    assert bench("mine", "--budget", "400s").returncode == 1
    simulation.worker("mine", seconds=times(0.5))
    instant.takes_s = 2.0
    assert cli("bench", "--resume", run_folder).returncode == 0
    (fixed,) = events("design")
    before = events()[: events().index(fixed)]
    took = [spent(one for one in before if one["event"] == "sample" and one["block"] == block) for block in range(4)]
    readings = [one["worker_seconds"] for one in before if one["event"] == "reference-kernel"]
    left = 400 - spent(before) - (8 - len(readings)) * max(readings)
    assert fixed["planned_blocks"] == 4 + int(left / statistics.median(took))
