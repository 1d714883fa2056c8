"""A tuning for the loader whose epochs end: its settings are in the workload's name, and held against what is seen."""

from __future__ import annotations

import pytest

from tests.cli.commands.tune.conftest import events, written

WORKLOAD = "loader-w2-b32-p2-spawn"


@pytest.fixture
def tuned(cli, arguments):
    given = arguments("--workload", WORKLOAD)
    del given[(at := given.index("--data")) : at + 2]  # it makes its own
    return lambda: cli(*given)


def test_all_trials_have_the_settings_of_the_name(tuned, local, simulation, tmp_path):
    tuned().ended(0)
    assert events(tmp_path)[0]["study"]["workload"] == WORKLOAD
    assert {start["training"]["workload"] for start in simulation.starts()} == {WORKLOAD}
    assert f"workload {WORKLOAD}" in written(local).reason


def test_workers_that_were_started_otherwise_end_it(tuned, engine, local):
    engine.other = lambda variables: {"loader": {"start": "fork", "persistent": False, "steps_per_epoch": 5}}
    result = tuned()
    assert (result.returncode, result.stdout, local.exists()) == (1, "", False)
    said = "the baseline's worker should have used spawn to start DataLoader workers, but used fork"
    assert said in result.stderr.splitlines()[-1]
