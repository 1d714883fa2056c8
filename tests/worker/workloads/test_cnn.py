"""The variants of the CNN. One process builds all of them, with little data, as importing torch takes a second."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

IMAGES = 600
BUILD_ALL = """
import json, numpy
from runner.worker import fashion_mnist
from runner.worker.workloads import WORKLOADS
random = numpy.random.default_rng(0)
arrays = {
    f"{part}-{name}-ubyte": random.integers(0, top, shape, dtype="uint8")
    for part, images in (("train", %d), ("t10k", 100))
    for name, top, shape in (("images-idx3", 256, (images, 28, 28)), ("labels-idx1", 10, images))
}
fashion_mnist.load = lambda data: (arrays, "d" * 64)
found = {}
for name, workload in WORKLOADS.items():
    training = workload.prepare("synthetic")
    model = training._model
    found[name] = {
        "parameters": sum(one.numel() for one in model.parameters()),
        "biases": [key for key, _ in model.named_parameters() if key.endswith("bias")],
        "images_per_step": training.images_per_step, "steps_per_epoch": training.steps_per_epoch,
        "digests": training.digests, "losses": [training.step() for _ in range(training.steps_per_epoch + 1)],
        "epochs": workload.epochs,
    }
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def built():
    argv = [sys.executable, "-c", BUILD_ALL % IMAGES]
    result = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_parameters(built):
    assert {name: one["parameters"] for name, one in built.items()} == {
        "cnn": 1_630_090, "cnn-nobias": 1_629_472, "cnn-batch128": 1_630_090, "cnn-batch256": 1_630_090,
    }  # fmt: skip
    assert built["cnn-nobias"]["biases"] == []
    assert len(built["cnn"]["biases"]) == 4


def test_an_epoch_has_the_same_images_in_fewer_steps(built):
    training_images = IMAGES * 9 // 10
    for name, batch in (("cnn", 64), ("cnn-nobias", 64), ("cnn-batch128", 128), ("cnn-batch256", 256)):
        assert built[name]["images_per_step"] == batch
        assert built[name]["steps_per_epoch"] == -(-training_images // batch)
        assert built[name]["epochs"] == 10


def test_digests_tell_the_variants_apart_and_the_data_is_one(built):
    digests = [one["digests"] for one in built.values()]
    assert len({of["code"] for of in digests}) == len(built)
    assert len({of["data"] for of in digests}) == 1
    weights = {name: one["digests"]["initial_weights"] for name, one in built.items()}
    assert weights["cnn"] == weights["cnn-batch128"] == weights["cnn-batch256"] != weights["cnn-nobias"]


def test_every_variant_trains_through_the_end_of_an_epoch(built):
    for one in built.values():
        assert all(0 < loss < 10 for loss in one["losses"])
    assert built["cnn"]["losses"] != built["cnn-batch128"]["losses"]
