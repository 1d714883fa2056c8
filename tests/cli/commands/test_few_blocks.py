"""``--blocks`` with fewer than a verdict takes: it is said before anything is measured."""

from __future__ import annotations

import pytest

from tests.simulation import times

ENOUGH = "whether settings take effect is still checked"
OF_NODE = "a node counts towards a verdict with 3 or more"


@pytest.fixture
def said(cli, simulation, instant, write_profile, run_folder):
    """What comes on stderr before the first block, of profiles that are measured in so many blocks."""

    def run(command, names, blocks, *options):
        given = [write_profile(name, f"env:\n  SIMULATED: {name}\n  OMP_STACKSIZE: 4M\n") for name in names]
        fixed = ("--python", simulation.python, "--data", "synthetic", "--seed", 7, "--output", run_folder)
        result = cli(command, *given, *fixed, "--blocks", blocks, *options).ended(0)
        lines = result.stderr.splitlines()
        first = next((at for at, line in enumerate(lines) if line.startswith("block 1")), len(lines))
        return [line for line in lines[:first] if "--blocks" in line]

    return run


@pytest.mark.parametrize(
    ("command", "names", "blocks", "why"),
    [
        ("bench", ["mine"], 2, "1 comparison can have no verdict with fewer than 6"),
        (
            "bench",
            ["mine", "b", "c", "d", "e"],
            7,
            "5 comparisons can have no verdict with fewer than 8",
        ),
        ("matrix", ["mine", "other"], 1, "2 comparisons can have no verdict with fewer than 7"),
        ("ablate", ["mine"], 1, "5 comparisons can have no verdict with fewer than 8"),
    ],
)
def test_the_least_number_is_said_before_anything_is_measured(said, simulation, command, names, blocks, why):
    for name in names:
        simulation.worker(name, seconds=times(0.5))
    assert said(command, names, blocks) == [f"--blocks {blocks}: {why}; {ENOUGH}"]


@pytest.mark.parametrize(
    ("names", "blocks", "options"),
    [
        (["mine"], 6, ()),
        (["mine"], 2, ("--json",)),
        ([], 1, ("baseline",)),  # nothing is compared
        (["mine"], 1, ("--full",)),  # its report says that it is one run each
    ],
)
def test_where_it_is_not_said(said, simulation, names, blocks, options):
    simulation.worker("mine", seconds=times(0.5))
    assert said("bench", names, blocks, *options) == []


def test_it_is_not_said_of_a_grid_which_has_no_verdict(loader_grid, undrawn):
    assert "--blocks" not in loader_grid("--batches", "16,32").stderr  # of the three that are its default


def test_it_is_not_said_of_a_plan_which_looks_at_the_noise(said, simulation):
    simulation.worker("mine", seconds=times(0.5))
    assert said("plan", ["mine"], 5) == []


@pytest.mark.parametrize(
    ("command", "options", "why"),
    [
        ("submit", ("--blocks", 5), "1 comparison can have no verdict with fewer than 6"),
        ("submit", ("--blocks", 2, "--nodes", 2), OF_NODE),
        ("submit", ("--blocks", 5, "--nodes", 2, "--nproc", 2), "4 comparisons can have no verdict with fewer than 8"),
        ("submit", ("--blocks", 3, "--nodes", 2), None),
        ("submit", ("--blocks", 6), None),
        ("submit", ("--blocks", 2, "--json"), None),
        ("matrix", ("--blocks", 2, "--nodes", 2), OF_NODE),
    ],
)
def test_it_is_said_of_a_job(cli, slurm, run_folder, command, options, why):
    result = cli(command, "intel-omp", *options, "--data", "synthetic", "--detach", "--output", run_folder).ended(0)
    assert len(slurm[0]) == 1
    assert result.stderr == (f"--blocks {options[1]}: {why}; {ENOUGH}\n" if why else "")
