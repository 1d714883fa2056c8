"""``envkit bench --full --until``: trainings that end when they have reached something; with simulated workers."""

from __future__ import annotations

import csv
import io
import json

import pytest
from envkit.bench import record

from tests.cli.commands.conftest import words
from tests.simulation import times

QUICK = [{"accuracy": accuracy} for accuracy in (0.5, 0.8, 0.82, 0.83)]
SLOW = [{"accuracy": accuracy} for accuracy in (0.4, 0.6, 0.7, 0.8)]


@pytest.fixture
def until(bench, simulation, instant):
    """Train four epochs, or until a target is reached."""
    simulation.worker("baseline", seconds=[1.0], figures=SLOW)
    simulation.worker("mine", seconds=times(0.5), figures=QUICK)
    return lambda target, *options: bench("mine", "--full", "--epochs", 4, "--until", target, *options)


def test_the_report_says_when_each_got_there_and_the_ratio(until, simulation):
    result = until("accuracy=0.8").ended(0)
    text = words(result.stdout)
    assert text.startswith("ONE RUN EACH mine: 4.02x baseline speed to accuracy=0.8, no confidence interval")
    assert "Target baseline: accuracy=0.8 after 1.0 s and 4 epochs, plus 1.0 s of tests" in text
    assert "mine: accuracy=0.8 after 0.2 s and 2 epochs, plus 0.5 s of tests" in text
    assert all(start["training"]["full"]["until"] == "accuracy=0.8" for start in simulation.starts())


def test_repeated_trainings_give_an_interval(until):
    text = words(until("accuracy=0.8", "--blocks", 7).stdout)
    assert text.startswith("FASTER mine: 4.0")
    assert "x baseline speed to accuracy=0.8 (95% CI " in text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("accuracy=0.81", "baseline"),
        ("accuracy=90%", "baseline"),
        ("loss=0.1", "baseline"),
    ],
)
def test_one_that_never_gets_there_is_named_with_its_best(until, target, said):
    result = until(target).ended(1)
    text = words(result.stdout)
    assert text.startswith(f"TARGET NOT REACHED {said}: not {target} in 4 epochs (best: ")
    assert "Next raise --epochs above 4, or choose a nearer target with --until" in text
    assert "baseline speed" not in text


def test_one_that_never_got_there_is_measured_to_the_end_and_found_again(until, cli, run_folder):
    until("accuracy=0.81")
    assert record.read(run_folder)[-1]["reason"] == "complete"
    assert "target not reached" in cli("history", run_folder, "--verdict", "not-reached").stdout
    assert cli("report", run_folder).returncode == 0


def test_the_numbers_are_in_the_exports(until, cli, run_folder):
    result = until("accuracy=0.8", "--json")
    document = json.loads(result.stdout)
    mine = next(one for one in document["learning_curves"] if one["arm"] == "mine")
    assert mine["to_target"] == {"seconds": pytest.approx(0.24875), "epochs": 2, "best": 0.8}
    assert [one["quality"] for one in mine["epochs"]] == QUICK[:2]
    rows = csv.DictReader(io.StringIO(cli("export", run_folder, "--format", "csv").stdout))
    row = next(row for row in rows if row["arm"] == "mine")
    assert float(row["time_to_target_s"]) == float(row["epoch_2_training_s"]) == pytest.approx(0.24875)
    assert (row["epoch_1_accuracy"], row["epoch_1_loss"], row["epoch_2_test_s"]) == ("0.5", "2.3", "0.25")
    assert (row["epoch_4_accuracy"], row["epoch_3_training_s"]) == ("", "")
    until("accuracy=0.9", "--output", run_folder.with_name("never")).ended(1)
    rows = json.loads(cli("export", run_folder.with_name("never"), "--format", "json").stdout)
    assert {row["time_to_target_s"] for row in rows} == {None}


def test_a_figure_that_no_epoch_tells_is_refused(refused, run_folder):
    translation = ("--workload", "translation", "--output", run_folder)
    line = refused("bench", "baseline", "--full", "--until", "BLEU=20", *translation)
    said = "--until BLEU=20: translation has no 'BLEU' after an epoch; choose one of: loss, token accuracy"
    assert line.startswith(f"envkit: {said}")
    assert not run_folder.exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [("accuracy", "is not METRIC=NUMBER; write for example accuracy=0.85 or loss=0.4"),
     ("accuracy=lots", "has no number behind the '='; write for example accuracy=0.85 or loss=0.4"),
     ("loss=-1", "is out of range: loss must be a number above 0; write for example accuracy=0.85 or loss=0.4")],
)  # fmt: skip
def test_what_is_no_target(cli, target, said):
    result = cli("bench", "baseline", "--full", "--until", target).ended(2, stdout="")
    assert result.stderr.splitlines()[-1].endswith(f"--until: '{target}' {said}")
