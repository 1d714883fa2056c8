"""The variants of the CNN. One process builds all of them, with little data, as importing torch takes a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

IMAGES = 300
BUILD_ALL = """
import json, numpy, torch
from envkit.worker import distributed, fashion_mnist
from envkit.worker.modes import Options
from envkit.worker.workloads import WORKLOADS
random = numpy.random.default_rng(0)
arrays = {
    f"{part}-{name}-ubyte": random.integers(0, top, shape, dtype="uint8")
    for part, images in (("train", %d), ("t10k", 100))
    for name, top, shape in (("images-idx3", 256, (images, 28, 28)), ("labels-idx1", 10, images))
}
fashion_mnist.load = lambda data: (arrays, "d" * 64)
found = {}
for name in ("cnn", "cnn-nobias", "cnn-batch128", "cnn-batch256"):
    workload = WORKLOADS[name]
    training = workload.prepare("synthetic", Options())
    model = training.network.model
    found[name] = {
        "parameters": sum(one.numel() for one in model.parameters()),
        "biases": [key for key, _ in model.named_parameters() if key.endswith("bias")],
        "images_per_step": training.images_per_step, "steps_per_epoch": training.steps_per_epoch,
        "digests": training.digests, "losses": [training.step() for _ in range(training.steps_per_epoch + 1)],
        "epochs": workload.epochs, "quality": training.quality(), "modes": training.network.modes(),
    }
for name, options in (("larger", Options(scale=2)), ("bf16", Options("bf16-autocast", channels_last=True))):
    training = WORKLOADS["cnn"].prepare("synthetic", options)
    found[name] = {
        "images_per_step": training.images_per_step, "steps_per_epoch": training.steps_per_epoch,
        "digests": training.digests, "losses": [training.step() for _ in range(3)], "modes": training.network.modes(),
    }
training = WORKLOADS["cnn"].prepare("synthetic", Options())
distributed.share = lambda batch: batch[:0]
nothing = [training._backward(torch.arange(48))]
nothing += [float(one.grad.abs().sum()) for one in training.network.model.parameters()]
print(json.dumps([found, nothing]))
"""


@pytest.fixture(scope="module")
def printed():
    """By one thread, as it may be beside other tests."""
    argv, variables = [sys.executable, "-c", BUILD_ALL % IMAGES], {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(argv, cwd=PROJECT, env=variables, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def built(printed):
    return printed[0]


@pytest.fixture(scope="module")
def variants(built):
    """The book's, without the CNN in other modes."""
    return {name: one for name, one in built.items() if name.startswith("cnn")}


def test_parameters(variants):
    assert {name: one["parameters"] for name, one in variants.items()} == {
        "cnn": 1_630_090, "cnn-nobias": 1_629_472, "cnn-batch128": 1_630_090, "cnn-batch256": 1_630_090,
    }  # fmt: skip
    assert variants["cnn-nobias"]["biases"] == []
    assert len(variants["cnn"]["biases"]) == 4


def test_an_epoch_has_the_same_images_in_fewer_steps(variants):
    training_images = IMAGES * 9 // 10
    for name, batch in (("cnn", 64), ("cnn-nobias", 64), ("cnn-batch128", 128), ("cnn-batch256", 256)):
        assert variants[name]["images_per_step"] == batch
        assert variants[name]["steps_per_epoch"] == -(-training_images // batch)
        assert variants[name]["epochs"] == 10


def test_digests_tell_the_variants_apart_and_the_data_is_one(built, variants):
    digests = [one["digests"] for one in built.values()]
    assert len({of["code"] for of in digests}) == len(built)
    assert len({of["data"] for of in digests}) == 1
    weights = {name: one["digests"]["initial_weights"] for name, one in variants.items()}
    assert weights["cnn"] == weights["cnn-batch128"] == weights["cnn-batch256"] != weights["cnn-nobias"]
    assert built["bf16"]["digests"]["initial_weights"] == weights["cnn"]  # the layout of memory is no other weight


def test_every_variant_trains_through_the_end_of_an_epoch(variants):
    for one in variants.values():
        assert all(0 < loss < 10 for loss in one["losses"])
        assert 0 <= one["quality"]["accuracy"] <= 1
    assert variants["cnn"]["losses"] != variants["cnn-batch128"]["losses"]


def test_a_scale_makes_batches_larger(built):
    assert (built["larger"]["images_per_step"], built["larger"]["steps_per_epoch"]) == (128, 3)
    assert built["larger"]["losses"] == built["cnn-batch128"]["losses"][:3]


def test_modes_are_seen_to_be_in_effect(built):
    assert built["cnn"]["modes"] == {"precision": "fp32", "compile": False, "channels_last": False, "device": "cpu"}
    assert built["bf16"]["modes"] == {"precision": "bf16-autocast", "compile": False, "channels_last": True,
                                      "device": "cpu"}  # fmt: skip
    assert built["bf16"]["losses"] == pytest.approx(built["cnn"]["losses"][:3], rel=0.02)
    assert built["bf16"]["losses"] != built["cnn"]["losses"][:3]


def test_a_rank_without_a_part_of_the_last_batch_has_no_loss_and_no_gradients(printed):
    """Of 54,000 images 48 are left for it: nothing for the last 16 of 64 ranks."""
    assert printed[1] == [0.0] * 9
