"""``envkit calibrate``, and that later runs find what it measured."""

from __future__ import annotations

import json

import pytest

from runner.bench import record
from runner.bench.blocks import samples as recorded_samples
from tests.simulated_worker import inspection


@pytest.fixture
def calibrate(cli, simulation):
    """Calibrate with simulated workers, into the results folder that runs look into."""

    def run(*options):
        fixed = ["--python", simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3]
        fixed += [] if "--budget" in options else ["--blocks", 10]
        return cli("calibrate", *fixed, *options)

    return run


@pytest.fixture
def found(bench, tmp_path):
    """Measure a profile; the noise floor that its record has, and the report's line on it."""

    def run(*options, name="run"):
        result = bench("mine", "--blocks", 6, *options, "--output", tmp_path / name)
        assert result.returncode == 0, result
        text = " ".join(result.stdout.split())
        line = text[text.index(" floor ") : text.index(" noise ")].strip()
        return record.read(tmp_path / name)[0]["calibration"], line

    return run


def test_baseline_is_measured_against_itself(calibrate, simulation, instant, tmp_path):
    result = calibrate("--output", tmp_path / "here")
    assert result.returncode == 0
    measured = recorded_samples(record.read(tmp_path / "here"))
    assert [event["arm"] for event in measured].count("baseline") == 10
    assert [event["arm"] for event in measured].count("again") == 10
    assert not any("SIMULATED" in start["environment"] for start in simulation.starts())


def test_the_report_says_the_noise_floor_and_what_to_do_next(calibrate, instant):
    text = " ".join(calibrate().stdout.split())
    assert "floor baseline against itself differs by less than " in text
    assert "next measure a profile: envkit bench PROFILE" in text
    assert "envkit calibrate" not in text


def test_it_takes_three_minutes_unless_it_is_told_otherwise(cli, calibrate, simulation, instant, tmp_path):
    fixed = ["--python", simulation.python, "--data", "synthetic", "--steps", 3]
    simulation.worker("baseline", seconds=[1.0, 2.0, 0.7])
    assert cli("calibrate", *fixed, "--output", tmp_path / "usual").returncode == 0
    assert record.read(tmp_path / "usual")[0]["plan"]["stopping"]["budget_s"] == 180
    assert calibrate("--budget", "30s", "--output", tmp_path / "short").returncode == 0
    spent = sum(event.get("worker_seconds", 0) for event in record.read(tmp_path / "short"))
    assert 26 < spent <= 30  # less than a block and a reading of the reference kernel are left


def test_a_later_run_shows_it_next_to_its_speedup(calibrate, found, instant, own_surroundings):
    noise, line = found(name="before")
    assert noise is None
    assert line.startswith("floor how well baseline agrees with itself here is not known")
    assert calibrate().returncode == 0
    (folder,) = (own_surroundings / "results").iterdir()
    noise, line = found()
    assert folder.name.endswith("-calibration")
    assert (noise["blocks"], noise["folder"]) == (10, str(folder))
    assert 0 < noise["sd"] < 0.1
    assert "(calibrated 20" in line


@pytest.mark.parametrize("option", [("--steps", 4), ("--warmup-steps", 1), ("--python", "/bin/sh")])
def test_a_run_of_another_length_or_interpreter_does_not_show_it(calibrate, found, instant, option):
    assert calibrate().returncode == 0
    assert found(*option)[0] is None


def test_a_run_on_another_machine_does_not_show_it(calibrate, found, simulation, instant):
    assert calibrate().returncode == 0
    simulation.inspection(fingerprint={**inspection([], {})["fingerprint"], "cpu_model": "Another CPU"})
    assert found()[0] is None


def test_a_run_is_gone_on_with(calibrate, cli, simulation, instant, tmp_path):
    simulation.worker("baseline", does="interrupt", **{"from": 7})
    assert calibrate("--output", tmp_path / "here").returncode == 130
    simulation.worker("baseline")
    assert cli("calibrate", "--resume", tmp_path / "here").returncode == 0
    assert len(recorded_samples(record.read(tmp_path / "here"))) == 20


def test_json(calibrate, instant):
    document = json.loads(calibrate("--json").stdout)
    (comparison,) = document["comparisons"]
    assert comparison["arm"] == "again"
    assert comparison["speedup"]["low"] <= 1 <= comparison["speedup"]["high"]
    assert comparison["deviation"] > 0


@pytest.mark.parametrize("option", [("--full",), ("--epochs", 2)])
def test_a_full_training_is_refused(refused, option):
    message = refused("calibrate", *option)
    assert message == f"envkit: calibrate takes no {option[0]}: one training each does not show how much they vary"
