"""A cluster for each test, with nodes that may die, and submissions whose workers are simulated."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.engines.slurm.cluster import CLUSTER, CONFIGURATION, LOCAL, MARK, NODES, SHORT, idle, slurm, waiting_for
from tests.simulation import times

SPACE = """\
name: small
title: A test
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000]}
"""


@pytest.fixture(autouse=True)
def cluster(requires):
    """Both nodes up and idle, before and after; what a test planted there is gone."""
    requires("sbatch")
    if not CONFIGURATION.exists() or MARK not in CONFIGURATION.read_text() or os.geteuid() != 0:
        pytest.skip("this is not the Slurm cluster of .ci/engines/slurm, or not root: these tests kill its nodes")
    _up()
    yield
    slurm("scancel", "--user", "root")
    for name in ("node1", "node2"):
        (NODES / name / "tasks").unlink(missing_ok=True)
    for path in (*LOCAL.iterdir(), *(NODES / "node2/local").iterdir()):
        subprocess.run(["rm", "-rf", path], check=True)
    _up()


def _up():
    """Bring up what is down; that takes some seconds, and most tests leave all up."""
    if not idle():
        slurm(CLUSTER)
        waiting_for(idle)


@pytest.fixture
def folder(run_folder):
    return run_folder


@pytest.fixture
def simulated(simulation, write_profile, folder):
    """The arguments that submit a profile with simulated workers."""
    profile = write_profile("mine", "env:\n  SIMULATED: mine\n")
    simulation.worker("mine", seconds=times(0.5))

    def arguments(*options, output=folder):
        length = () if "--blocks" in options else ("--blocks", 6)
        return ["submit", profile, *SHORT, *length, "--python", simulation.python, "--output", output, *options]

    return arguments


@pytest.fixture
def slow(simulation):
    """Have workers take so long, so that there is time to do something to them."""

    def take(seconds):
        simulation.worker("baseline", delay=seconds)
        simulation.worker("mine", seconds=times(0.5), delay=seconds)

    return take


@pytest.fixture
def tune(tmp_path, simulation, folder):
    """The arguments that tune with simulated workers, of which those under one setting take half as long."""
    space = tmp_path / "small.yaml"
    space.write_text(SPACE)
    simulation.named("mine", "GOMP_SPINCOUNT=1000")
    simulation.worker("mine", seconds=times(0.5))
    fixed = ["--space", space, "--space-only", "--data", "synthetic", "--steps", 3, "--python", simulation.python]

    def arguments(*options, budget="25s"):
        return ["tune", *fixed, "--budget", budget, "--profile", tmp_path / "work-tuned.yaml", "--output", folder,
                "--nodes", 2, "--partition", "work", *options]  # fmt: skip

    return arguments
