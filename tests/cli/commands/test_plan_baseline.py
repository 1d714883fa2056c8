"""``envkit plan`` without a profile: the baseline against itself, and that later runs find what it measured."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from envkit.bench import record
from envkit.stats.power import blocks_needed

from tests.cli.commands.conftest import words
from tests.records import spent


@pytest.fixture
def study(cli, simulation):
    """Measure the noise with simulated workers, into the results folder that runs look into."""

    def run(*options):
        fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3]
        fixed += [] if "--budget" in options else ["--blocks", 10]
        return cli("plan", *fixed, *options)

    return run


@pytest.fixture
def found(bench, cli, tmp_path):
    """Measure a profile; the noise floor that its record has, and the report's line on it."""

    def run(*options, name="run"):
        result = bench("mine", "--blocks", 6, *options, "--output", tmp_path / name)
        assert result.returncode == 0, result
        text = words(cli("report", tmp_path / name, "--details").stdout)
        line = text[text.index(" floor ") : text.index(" noise ")].strip()
        return record.first(tmp_path / name)["calibration"], line

    return run


def test_baseline_is_measured_against_itself(study, cli, simulation, instant, samples, run_folder):
    result = study("--output", run_folder)
    assert result.returncode == 0
    assert Counter(arm for _, arm in samples()) == {"baseline": 10, "again": 10}
    assert not any("SIMULATED" in start["environment"] for start in simulation.starts())
    assert "floor baseline against itself stays within " in words(cli("report", run_folder, "--details").stdout)
    lines = result.stdout.splitlines()
    assert re.match(r"NO DIFFERENCE (FOUND|ABOVE 2%)  baseline against itself: [\d.]+x", lines[0])
    assert "floor baseline against itself stays within " in words(result.stdout)
    assert [line.split()[1] for line in lines if " envkit bench PROFILE --python " in line] == ["1%", "2%", "5%"]
    assert lines[-1] == f"details   envkit report {run_folder} --details"


def test_it_takes_three_minutes_unless_it_is_told_otherwise(cli, study, simulation, instant, tmp_path):
    fixed = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
    simulation.worker("baseline", seconds=[1.0, 2.0, 0.7])
    assert cli("plan", *fixed, "--output", tmp_path / "usual").returncode == 0
    assert record.first(tmp_path / "usual")["study"]["stopping"]["budget_s"] == 180
    assert study("--budget", "30s", "--output", tmp_path / "short").returncode == 0
    # less than a block and a reading of the reference kernel are left
    assert 26 < spent(record.read(tmp_path / "short")) <= 30


def test_a_later_run_shows_it_next_to_its_speedup(study, found, instant, own_surroundings):
    noise, line = found(name="before")
    assert noise is None
    assert line.startswith("floor unknown; measure it with: envkit plan")
    assert study().returncode == 0
    (folder,) = (own_surroundings / "results").iterdir()
    noise, line = found()
    assert folder.name.endswith("-plan-baseline")
    assert (noise["blocks"], noise["folder"]) == (10, str(folder))
    assert 0 < noise["scale"] < 0.1
    assert "(measured 20" in line


def test_a_run_of_another_length_does_not_show_it(study, found, instant):
    assert study().returncode == 0
    assert found("--steps", 4)[0] is None
