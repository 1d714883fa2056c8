"""The workloads that make their data themselves, trained for real for a few steps. One process builds all of them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from runner.worker.workloads.segmentation import scores_of
from tests.conftest import PROJECT

STEPS = 4
BUILD_ALL = """
import json
from runner.worker import helpers
from runner.worker.modes import Options
from runner.worker.workloads import get, loader, segmentation, translation
segmentation.PICTURES, segmentation.TEST_PICTURES = 72, 16
translation.PAIRS, translation.TEST_PAIRS = 128, 8
loader.PICTURES, loader.TEST_PICTURES = 128, 16
BF16 = Options("bf16-autocast")
found = {}
for key, name, options in (
    ("segmentation", "segmentation", Options()), ("translation", "translation", Options()),
    ("loader", "loader", Options()), ("segmentation again", "segmentation", Options()),
    ("translation again", "translation", Options()),
    ("segmentation larger", "segmentation", Options(scale=2)), ("translation larger", "translation", Options(scale=2)),
    ("loader larger", "loader", Options(scale=2)),
    ("segmentation bf16", "segmentation", Options("bf16-autocast", channels_last=True)),
    ("translation bf16", "translation", BF16), ("loader bf16", "loader", Options("bf16-autocast", channels_last=True)),
    ("alone", "loader-w0-b48", Options()), ("many", "loader-w3-b48-p4", Options()),
):
    training = get(name).prepare("generated", options)
    found[key] = {
        "unit": training.unit, "images_per_step": training.images_per_step,
        "steps_per_epoch": training.steps_per_epoch, "digests": training.digests,
        "losses": [training.step() for _ in range(%d)], "quality": training.quality(),
        "modes": training.network.seen(), "parameters": sum(one.numel() for one in training.network.model.parameters()),
        "helped": helpers.used()["user_s"],
    }
    del training
print(json.dumps(found))
"""
NAMES = ("segmentation", "translation", "loader")
PLAIN = {"precision": "fp32", "compile": False, "channels_last": False}


@pytest.fixture(scope="module")
def built():
    argv = [sys.executable, "-c", BUILD_ALL % STEPS]
    result = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("name", "unit", "batch", "epoch"), [("segmentation", "images", 12, 6), ("translation", "sentences", 32, 4),
                                         ("loader", "images", 48, 2)],
)  # fmt: skip
def test_what_a_step_is(built, name, unit, batch, epoch):
    one, larger = built[name], built[f"{name} larger"]
    assert (one["unit"], one["images_per_step"], one["steps_per_epoch"]) == (unit, batch, epoch)
    assert (larger["images_per_step"], larger["steps_per_epoch"]) == (2 * batch, epoch // 2)
    assert all(0 < loss < 20 for loss in one["losses"])


@pytest.mark.parametrize("name", ["segmentation", "translation"])
def test_the_seed_fixes_losses_and_digests(built, name):
    assert built[name]["losses"] == built[f"{name} again"]["losses"]
    assert built[name]["digests"] == built[f"{name} again"]["digests"]
    assert built[name]["digests"].keys() == {"code", "data", "initial_weights"}


def test_digests_tell_workloads_and_options_apart(built):
    assert len({built[name]["digests"]["data"] for name in NAMES}) == 3
    for name in NAMES:
        digests = [built[key]["digests"] for key in (name, f"{name} larger", f"{name} bf16")]
        assert len({one["code"] for one in digests}) == 3
        assert len({(one["data"], one["initial_weights"]) for one in digests}) == 1


@pytest.mark.parametrize(
    ("name", "figures"), [("segmentation", {"pixel accuracy", "mIoU"}), ("translation", {"token accuracy"}),
                          ("loader", {"accuracy"})],
)  # fmt: skip
def test_the_figures_of_a_test(built, name, figures):
    found = {key: value for key, value in built[name]["quality"].items() if key != "translations"}
    assert found.keys() == figures
    assert all(0 <= value <= 1 for value in found.values())


def test_translations_are_words_without_what_begins_ends_and_fills_up(built):
    pairs = built["translation"]["quality"]["translations"]
    assert len(pairs) == 8
    for own, reference in pairs:
        assert len(own) <= 20
        assert min(reference) >= 3
        assert 2 not in own


@pytest.mark.parametrize("name", NAMES)
def test_modes_are_seen_to_be_in_effect(built, name):
    assert built[name]["modes"] == PLAIN
    other = built[f"{name} bf16"]
    assert other["modes"] == {"precision": "bf16-autocast", "compile": False, "channels_last": name != "translation"}
    assert other["losses"] == pytest.approx(built[name]["losses"], rel=0.05)
    assert other["losses"] != built[name]["losses"]


def test_the_number_of_workers_changes_nothing_that_is_learnt(built):
    assert built["alone"]["losses"] == built["loader"]["losses"] == built["many"]["losses"]
    assert built["alone"]["helped"] == 0
    assert built["many"]["helped"] > 0


def test_the_figures_of_a_segmentation():
    """Of 100 pixels 60 are background, of which 10 are taken for a person, and 5 of a person for background."""
    figures = scores_of([[50, 10], [5, 35]])
    assert figures == {"pixel accuracy": 0.85, "mIoU": pytest.approx((50 / 65 + 35 / 50) / 2)}
    assert scores_of([[10, 0], [0, 0]]) == {"pixel accuracy": 1.0, "mIoU": 1.0}


@pytest.mark.parametrize("name", ["segmentation", "translation"])
def test_what_is_trained_is_learnt(built, name):
    """Within a few steps the loss goes down from where chance begins."""
    assert built[name]["losses"][-1] < built[name]["losses"][0]
