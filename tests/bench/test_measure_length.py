"""How long a run is: budgets, the blocks that are planned for them, looks, and machines that change meanwhile."""

from __future__ import annotations

import json
import time

import pytest
from envkit.cli.measuring_options import BUDGET_S

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


def without_budget(bench_arguments, *options):
    arguments = bench_arguments("mine")
    at = arguments.index("--blocks")
    return [*arguments[:at], *arguments[at + 2 :], *options]


# --- a budget without room for a verdict ---


GOING_ON = (
    "envkit: one block takes 2.0 s: a verdict needs 6 blocks, about {} in all; continuing until then; Ctrl-C stops"
)


def test_a_run_that_takes_somewhat_longer_than_its_budget_says_so_at_once_and_goes_on(bench, instant, events):
    """The first starts take 2 s, a block 2 s, and the reference kernel 1 s."""
    result = bench("mine", "--budget", "10s")
    said = result.stderr.splitlines()
    (told,) = [line for line in said if line.startswith("envkit: ")]
    assert told == GOING_ON.format("15 s") + " and reports what was measured"
    assert result.returncode == 0
    assert "no interference detected in 6 blocks" in result.stdout
    assert events("longer")[0]["budget_s"] == 10.0


@pytest.mark.parametrize("factor", [0.1, 1, 10])
def test_how_many_blocks_there_are_does_not_depend_on_what_is_found(bench, simulation, instant, events, factor):
    simulation.worker("mine", seconds=times(factor))
    document = json.loads(bench("mine", "--budget", "10s", "--json").stdout)
    assert document["comparisons"][0]["speedup"]["blocks"] == 6
    assert document["longer_than_budget"] == {"budget_s": 10.0, "takes_s": pytest.approx(15.0, abs=0.1)}
    assert document["ended"] == "planned blocks measured"


def test_a_budget_that_is_far_too_short_ends_after_the_first_block_with_what_was_learnt(
    bench, instant, simulation, samples, events, cli, run_folder
):
    simulation.worker("mine", seconds=times(0.5))
    options = ("--warmup-steps", 4)  # with which a worker has no least time
    result = bench("mine", "--budget", "4.5s", *options, text="expect: {openmp.runtime: gnu}\n").ended(2)
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("envkit: ")]
    assert said.startswith("envkit: --budget 4.5s is too short: a verdict needs 6 blocks, about 15 s on this ")
    assert f"; give --budget 15s, or continue with: envkit bench --resume {run_folder}" in said
    assert samples() == [(0, "mine"), (0, "baseline")]
    assert events()[-1]["reason"] == "the budget is too short"
    shown = " ".join(result.stdout.split())
    assert shown.startswith("UNFINISHED mine: 1 complete block (one sample of each), and a verdict needs 6")
    assert f"Next about 12 s more: envkit bench --resume {run_folder}" in shown
    assert "Settings verified in every process" in shown
    assert "Losses identical over 3 steps" in shown
    assert "mine 1 " in shown  # a row of the table, with a time of a step
    document = json.loads(cli("report", run_folder, "--json").stdout)
    assert document["unfinished"] == pytest.approx(
        {"blocks": 1, "fewest": 6, "total_s": 15.0, "more_s": 12.0}, rel=0.01
    )
    assert document["comparisons"][0]["speedup"] is None


def test_what_ended_as_too_short_goes_on_to_a_verdict(bench, instant, cli, run_folder, samples):
    assert bench("mine", "--budget", "4.5s", "--warmup-steps", 4).returncode == 2
    resumed = cli("bench", "--resume", run_folder)
    assert (resumed.returncode, len(samples())) == (0, 12)
    assert "no interference detected in 6 blocks" in resumed.stdout


def test_what_ended_before_its_first_block_tells_what_the_first_workers_showed(
    bench, instant, simulation, samples, cli, run_folder
):
    instant.takes_s = 20.0
    simulation.worker("mine warming", seconds=times(0.5))
    options = ("--budget", "30s", "--warmup-steps", 4)
    result = bench("mine", *options, text="expect: {openmp.runtime: gnu}\n")
    assert (result.returncode, samples()) == (2, [])
    assert result.stdout.startswith("UNFINISHED  mine: 0 complete blocks (one sample of each), and a verdict needs 6")
    shown = " ".join(cli("report", run_folder, "--details").stdout.split())
    assert "first baseline 142.86 ms per step, mine 71.07 ms per step, in one process each" in shown
    assert "settings mine: 1 verified in its first process" in shown


def test_what_is_not_in_effect_in_its_first_process_ends_the_run(bench, instant, simulation, cli, run_folder, events):
    """Nothing is measured then, however long the budget is."""
    simulation.worker("mine warming", seconds=times(0.5), evidence={"openmp": {"runtime": "intel"}})
    result = bench("mine", text="expect: {openmp.runtime: gnu}\n").ended(1)
    assert result.stdout.startswith("NOT IN EFFECT  mine: no speedup is reported")
    (sample,) = events("sample")
    assert (sample["arm"], sample["block"], sample["padding_bytes"]) == ("mine", 0, 0)
    assert [start["name"] for start in simulation.starts(all=True)] == ["inspect", "baseline warming", "mine warming"]
    shown = " ".join(cli("report", run_folder, "--details").stdout.split())
    assert "settings mine is NOT IN EFFECT: openmp.runtime: expected gnu, seen intel" in shown
    assert cli("bench", "--resume", run_folder).returncode == 1
    assert [sample["block"] for sample in events("sample")] == [0, 1]


def test_an_interrupted_run_says_what_a_verdict_takes(bench, instant, simulation, run_folder):
    simulation.worker("mine", seconds=times(0.5), **{"does": "interrupt", "from": 2})
    result = bench("mine", "--budget", "50s").ended(130)
    shown = " ".join(result.stdout.split())
    assert shown.startswith("UNFINISHED mine: 2 complete blocks (one sample of each), and a verdict needs 6")
    assert f"about 10 s more: envkit bench --resume {run_folder}" in shown


@pytest.mark.parametrize("budget", ["0.01s", "2s", "3s"])
def test_a_budget_that_no_machine_could_keep_is_refused_before_anything_starts(
    cli, bench_arguments, refused, simulation, instant, run_folder, budget
):
    arguments = bench_arguments("mine", "--budget", budget)
    at = arguments.index("--steps")
    said = refused(*arguments[:at], *arguments[at + 2 :])
    assert said == (
        f"envkit: --budget {budget} is too short: a verdict needs 6 blocks, and each worker takes 0.5 s or more; "
        "give --budget 11s or more"
    )
    assert not run_folder.exists()
    assert [one["name"] for one in simulation.starts(all=True) if "training" in one] == []


def test_in_a_job_of_slurms_a_run_takes_no_longer_than_the_job(bench, instant, samples):
    instant.takes_s = 10.0
    ends_soon = {"SLURM_JOB_END_TIME": str(int(time.time()) + 60)}
    result = bench("mine", "--budget", "100s", **ends_soon).ended(2)
    assert result.stderr.splitlines()[-1].startswith(
        "envkit: --budget 100s is too short: a verdict needs 6 blocks, about 2.5 minutes on this machine; "
        "give --budget 2.5m, in a Slurm job that is as long"
    )
    assert len(samples()) == 2


def test_without_a_budget_the_run_goes_on_until_there_is_an_interval(cli, bench_arguments, instant, events):
    instant.takes_s = 60.0
    result = cli(*without_budget(bench_arguments))
    assert "envkit: one block takes 1 min 59 s: a verdict needs 6 blocks, about 14 minutes in all" in result.stderr
    assert "continuing until then" in result.stderr
    assert "no interference detected in 6 blocks" in result.stdout
    assert spent(events()) > BUDGET_S


def test_one_arm_ten_times_as_fast_as_the_other(bench, simulation, instant):
    simulation.worker("mine", seconds=times(0.1))
    result = bench("mine", "--budget", "50s")
    assert "FASTER  mine: 10.03x baseline speed" in result.stdout


@pytest.mark.parametrize(
    ("seconds", "options", "blocks"),
    [
        (times(0.5), (), 10),
        (times(1), (), 10),
        ([1.0, 1.3, 0.8], (), 20),
        ([0.5, 0.65, 0.4], (), 10),
        ([0.5, 0.65, 0.4], ("--half-width", "4%"), 20),
        (times(0.5), ("--half-width", "0.1%"), 20),
    ],
    ids=["faster", "equal", "undecided", "much faster, with noise", "wider than was asked for", "not precise enough"],
)
def test_a_run_stops_early_at_a_look_only_and_only_when_it_is_decided(
    bench, simulation, instant, events, samples, seconds, options, blocks
):
    """The first starts take 2 s, a block 2 s, the reference kernel 1 s: 20 blocks are planned for 50 s after four.

    A large difference could be seen after 6 blocks; the looks are after 8, where the rate is too strict, and 10.
    """
    simulation.worker("mine", seconds=seconds)
    result = bench("mine", "--budget", "50s", "--json", *options)
    document = json.loads(result.stdout)
    (fixed,) = events("design")
    assert (result.returncode, fixed["planned_blocks"], fixed["looks"]) == (0, 20, [8, 10, 12, 14, 16, 18, 20])
    assert sorted(samples()) == [(block, arm) for block in range(blocks) for arm in ("baseline", "mine")]
    assert document["comparisons"][0]["speedup"]["blocks"] == blocks
    assert document["ended"] == ("precise enough" if blocks < 20 else "planned blocks measured")
    assert document["design"] == {"planned": 20, "looks": [8, 10, 12, 14, 16, 18, 20], "comparisons": 1}
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
    result = bench("baseline", "--budget", "30s", "--json").ended(0)
    document = json.loads(result.stdout)
    assert document["comparisons"] == []
    assert [one["arm"] for one in document["measured"]] == ["baseline"]
    assert samples() == [(block, "baseline") for block in range(24)]
