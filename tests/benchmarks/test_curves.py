"""The page of trainings until an accuracy is reached; with simulated workers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from envkit.cli import measuring

from benchmarks import curves
from tests import records
from tests.benchmarks.conftest import refusal
from tests.reports import events_of

ACCURACIES = [{"accuracy": accuracy} for accuracy in (0.5, 0.7, 0.8)]


@pytest.fixture
def measured(benchmark_script, simulation, instant, write_profile, page_file):
    """Train three epochs, or until a target is reached, and write the page."""
    profile = write_profile("mine", "env:\n  SIMULATED: mine\n")
    simulation.worker("baseline", seconds=[300.0], figures=ACCURACIES)
    simulation.worker("mine", seconds=[150.0], figures=ACCURACIES)
    fixed = ("--epochs", 3, "--data", "synthetic", "--python", simulation.python, "--page", page_file)
    return lambda *options: benchmark_script(curves, "--profile", profile, *fixed, *options)


def test_the_page_has_the_time_to_the_target_and_every_epoch(measured, page_file):
    result = measured("--until", "accuracy=0.7")
    assert result.returncode == 0, result.stderr
    text = page_file.read_text()
    assert "| baseline | 2 | 200.0 s | - | 0.5 s | " in text
    assert "| mine | 2 | 100.0 s | 2.000 | 0.5 s | " in text
    assert "mine: accuracy=0.7 after 100.0 s and 2 epochs, plus 0.5 s of tests" in text
    assert "| 2 | 100.0 s | 2.200 | 70.0% | 0.25 s |" in text
    assert "- host: no interference was detected" in text
    assert "The run: `envkit bench mine --full --epochs 3 --until accuracy=0.7`" in text
    assert "SYNTHETIC DATA" in text
    for theme in ("light", "dark"):
        assert f'"page-{theme}.svg"' in text
        picture = page_file.with_name(f"page-{theme}.svg").read_text()
        assert "until accuracy=0.7" in "".join(ElementTree.fromstring(picture).itertext())


def test_a_target_that_is_never_reached_is_on_the_page_too(measured, page_file):
    assert measured("--until", "accuracy=0.9").returncode == 0
    text = page_file.read_text()
    assert "| mine | 3 | 150.0 s (not reached) | - | " in text
    assert "TARGET NOT REACHED  " in text


def test_the_page_of_a_run_that_is_there(benchmark_script, page_file, tmp_path):
    study = {"epochs": 3, "until": "accuracy=0.7"}
    behaves = {"figures": ACCURACIES}
    folder = records.write(tmp_path / "run", events_of(1, mine=behaves, baseline=behaves, study=study))
    assert benchmark_script(curves, folder, "--page", page_file).returncode == 0
    assert "| mine | 2 | 0.3 s | 2.010 | " in page_file.read_text()
    assert not measuring.RESULTS.exists()


def test_a_run_of_steps_makes_no_page(benchmark_script, page_file, tmp_path):
    folder = records.write(tmp_path / "run", events_of(7))
    said = refusal(benchmark_script(curves, folder, "--page", page_file))
    assert said == f"curves: {folder}: has no learning curves; give the folder of a run with --full, or none"


def test_bad_input_ends_it_before_anything_is_measured(measured, page_file):
    said = refusal(measured("--until", "acuracy=0.7"))
    assert "cnn has no 'acuracy' after an epoch (did you mean 'accuracy'?)" in said
    assert not page_file.exists()
