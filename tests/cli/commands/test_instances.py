"""``envkit bench --instances``: what is started, worked out and refused; workers are simulated, of 4 CPUs, 2 cores."""

from __future__ import annotations

import json

import pytest

from tests.cli.commands.conftest import words
from tests.simulation import STEADY, times

# What a step takes beside that of one process of the baseline; at once it is a step of each.
BASELINE, MINE, ALONE = 1.6, 0.8, 0.5


@pytest.fixture
def workers(simulation, instant):
    """Workers of known speed: two of `mine` at once, with what else is given."""

    def plant(**behaviour):
        simulation.worker("baseline x 2", seconds=times(BASELINE))
        simulation.worker("mine", seconds=[ALONE * second for second in STEADY])
        simulation.worker("mine x 2", **{"seconds": times(MINE), **behaviour})

    plant()
    return plant


def test_what_all_do_in_a_second_beside_one_process(bench, cli, workers, run_folder):
    """In as many blocks as three comparisons take."""
    result = bench("mine", "--instances", 2, "--blocks", 8).ended(0)
    found = json.loads(cli("report", run_folder, "--json").stdout)
    (one,) = found["instances"]
    assert (one["arm"], one["instances"]) == ("2 x mine", 2)
    for beside, expected in (("over_reference", 2 / MINE), ("over_one_process", 2 * ALONE / MINE)):
        assert one[beside]["low"] < expected < one[beside]["high"]
        assert one[beside]["ratio"] == pytest.approx(expected, rel=0.02)
    assert {each["arm"]: each["verdict"] for each in found["comparisons"]} == {"mine": "faster", "2 x mine": "faster"}
    speeds = {each["arm"]: each["images_per_s"] for each in found["measured"]}
    assert speeds["2 x mine"] == pytest.approx(2 / MINE * speeds["baseline"], rel=0.02)

    text = words(result.stdout)
    assert text.startswith("FASTER 2 instances of mine: 2.50x one baseline process's throughput (95% CI 2.4")
    assert "At once 2 at once: 1.2" in text
    assert "x the throughput of one mine process" in text
    assert "Use 2 at once, each on its own CPUs: taskset -c CPUS envkit exec " in text
    assert "several trainings at once: a step is one step of each, and speedups are per item" in text
    assert "**At once**: 2 at once: 1.2" in cli("report", run_folder, "--markdown").stdout
    details = words(cli("report", run_folder, "--details").stdout)
    assert "instances 2 x mine; each on its share of the CPUs, training on all batches" in details


def test_the_baseline_alone(bench, workers, cli, run_folder):
    """Which is no calibration."""
    text = words(bench("baseline", "--instances", 2, "--blocks", 8).stdout)
    assert "2 instances of baseline: 1.25x one baseline process's throughput (95% CI 1.2" in text
    assert "At once" not in text
    assert "again" not in text


def test_several_profiles_of_which_the_best_is_told_first(cli, bench_arguments, workers, write_profile, simulation):
    simulation.worker("other x 2", seconds=times(0.4))
    other = write_profile("other", "env: {SIMULATED: other}\n")
    arguments = bench_arguments("mine", "--instances", 2, "--blocks", 9)
    result = cli(*arguments[:2], other, *arguments[2:])
    assert "2 instances of other: 5.0" in words(result.stdout)


def test_where_one_after_the_other_is_better(bench, workers):
    workers(seconds=times(1.25))
    text = words(bench("mine", "--instances", 2, "--blocks", 8).stdout)
    assert "Next train one after another under mine: 2 at once have lower throughput" in text


def test_several_at_once_are_no_advice_under_a_profile_that_is_slower_than_the_baseline(bench, simulation, instant):
    simulation.worker("mine", seconds=[4 * second for second in STEADY])
    simulation.worker("mine x 2", seconds=times(4.0))
    text = words(bench("mine", "--instances", 2, "--blocks", 8).stdout)
    assert "At once 2 at once: 2.0" in text  # one process under mine, and half of the baseline's
    assert "Use " not in text
    assert "Next keep baseline" in text
