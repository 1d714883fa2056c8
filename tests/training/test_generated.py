"""The workloads that make their data themselves, trained for real for a few steps. One process builds all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from envkit.worker.workloads.segmentation import scores_of

from tests.conftest import PROJECT

# How many steps are taken: of each workload as it is, and of others that only have to begin as that does. One that is
# larger takes one, but for the loader, whose workers would make hundreds of pictures for it.
STEPS, FEWER = 4, 2
BUILD_ALL = f"""
import json
from envkit.worker.measure import helpers
from envkit.worker.modes import Options
from envkit.worker.workloads import get, loader, segmentation, translation
segmentation.PICTURES, segmentation.TEST_PICTURES = 48, 4
translation.PAIRS, translation.TEST_PAIRS = 128, 8
loader.PICTURES, loader.TEST_PICTURES = 96, 16
BF16 = Options("bf16-autocast")
found = {{}}
for key, name, options, steps in (
    ("segmentation", "segmentation", Options(), {STEPS}), ("translation", "translation", Options(), {STEPS}),
    ("loader", "loader", Options(), {FEWER}), ("segmentation again", "segmentation", Options(), {FEWER}),
    ("translation again", "translation", Options(), {FEWER}),
    ("segmentation larger", "segmentation", Options(scale=2), 1),
    ("translation larger", "translation", Options(scale=2), 1), ("loader larger", "loader", Options(scale=2), 0),
    ("segmentation bf16", "segmentation", Options("bf16-autocast", channels_last=True), {FEWER}),
    ("translation bf16", "translation", BF16, {FEWER}),
    ("loader bf16", "loader", Options("bf16-autocast", channels_last=True), {FEWER}),
    ("alone", "loader-w0-b48", Options(), {FEWER}), ("many", "loader-w3-b48-p1", Options(), {FEWER}),
):
    training = get(name).prepare("generated", options)
    found[key] = {{
        "unit": training.unit, "images_per_step": training.images_per_step,
        "steps_per_epoch": training.steps_per_epoch, "digests": training.digests,
        "losses": [training.step() for _ in range(steps)], "quality": training.quality() if key == name else None,
        "modes": training.network.modes(),
        "parameters": sum(one.numel() for one in training.network.model.parameters()),
        "helped": helpers.used()["user_s"],
    }}
    del training
print(json.dumps(found))
"""
NAMES = ("segmentation", "translation", "loader")
PLAIN = {"precision": "fp32", "compile": False, "channels_last": False, "device": "cpu"}


@pytest.fixture(scope="module")
def built():
    """By one thread, as it may be beside other tests."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", BUILD_ALL], cwd=PROJECT, env=variables, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("name", "unit", "batch", "epoch"), [("segmentation", "images", 12, 4), ("translation", "sentences", 32, 4),
                                         ("loader", "images", 48, 2)],
)  # fmt: skip
def test_what_a_step_is(built, name, unit, batch, epoch):
    one, larger = built[name], built[f"{name} larger"]
    assert (one["unit"], one["images_per_step"], one["steps_per_epoch"]) == (unit, batch, epoch)
    assert (larger["images_per_step"], larger["steps_per_epoch"]) == (2 * batch, epoch // 2)
    assert all(0 < loss < 20 for loss in one["losses"])


@pytest.mark.parametrize("name", ["segmentation", "translation"])
def test_the_seed_fixes_losses_and_digests(built, name):
    assert built[name]["losses"][:FEWER] == built[f"{name} again"]["losses"]
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
    assert other["modes"] == {"precision": "bf16-autocast", "compile": False, "channels_last": name != "translation",
                              "device": "cpu"}  # fmt: skip
    assert other["losses"] == pytest.approx(built[name]["losses"][:FEWER], rel=0.05)
    assert other["losses"] != built[name]["losses"][:FEWER]


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
