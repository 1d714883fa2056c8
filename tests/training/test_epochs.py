"""Full trainings for real, on little data: tests between epochs change nothing, and ranks end together."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

TIMEOUT_S = 300
# Each workload trains two epochs, tested after each, and again as many steps, tested at their end.
TRAIN = """
import json, numpy, os
from envkit.worker import fashion_mnist
from envkit.worker.measure import train
from envkit.worker.measure.quality_target import parse
from envkit.worker.workloads import cnn, segmentation, translation
random = numpy.random.default_rng(0)
arrays = {
    f"{part}-{name}-ubyte": random.integers(0, top, shape, dtype="uint8")
    for part, images in (("train", 300), ("t10k", 100))
    for name, top, shape in (("images-idx3", 256, (images, 28, 28)), ("labels-idx1", 10, images))
}
fashion_mnist.load = lambda data: (arrays, "d" * 64)
segmentation.PICTURES, segmentation.TEST_PICTURES = 24, 4
translation.PAIRS, translation.TEST_PAIRS = 64, 8
train.collect = dict
figures = cnn.Training.quality
cnn.Training.quality = lambda self: {**figures(self), "pid": os.getpid()}
found = {}
for name in ("cnn", "segmentation", "translation"):
    epochs = train.train(name, "synthetic", 0, 0, 2)
    steps = train.train(name, "synthetic", 0, len(epochs["step_s"]), 0, test=True)
    found[name] = {"epochs": epochs, "steps": steps}
found["pid"] = os.getpid()
found["ended"] = train.train("cnn", "synthetic", 0, 0, 3, until=parse("loss=1000"))
print(json.dumps(found))
"""
# One of two ranks: neither alone would end when both together do.
RANK = """
import json, sys
import torch.distributed as group
from envkit.worker.measure.quality_target import parse
from envkit.worker.measure.epochs import Stretch, train_epochs
rank = int(sys.argv[1])
group.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
losses = iter([[4.0, 3.0, 2.0], [6.0, 5.0, 4.0]][rank])
stretch = lambda: Stretch([next(losses)], [1.0], 1.0, {}, None, 0)
curve = train_epochs(3, stretch, lambda: {"accuracy": 0.1 + rank}, parse("loss=4"))[1]
print(json.dumps([(one["loss"], one["quality"]) for one in curve]))
group.barrier()
group.destroy_process_group()
"""


def start(code, *arguments):
    """By one thread, as it may be beside other tests."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=PROJECT, env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def printed(process):
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def trained():
    return printed(start(TRAIN))


@pytest.mark.parametrize("name", ["cnn", "segmentation", "translation"])
def test_tests_between_epochs_change_nothing_that_is_learnt(trained, name):
    epochs, steps = trained[name]["epochs"], trained[name]["steps"]
    assert epochs["losses"] == steps["losses"]
    assert len(epochs["curve"]) == 2
    half = len(epochs["losses"]) // 2
    assert epochs["curve"][0]["loss"] == pytest.approx(sum(epochs["losses"][:half]) / half)


@pytest.mark.parametrize("name", ["cnn", "segmentation", "translation"])
def test_another_process_finds_what_the_training_s_own_would(trained, name):
    found, own = (trained[name][how]["quality"] for how in ("epochs", "steps"))
    assert {**found, "pid": 0} == {**own, "pid": 0}


def test_no_epoch_is_tested_in_the_process_that_trains(trained):
    pids = {epoch["quality"]["pid"] for epoch in trained["cnn"]["epochs"]["curve"]}
    assert len(pids) == 1
    assert trained["pid"] not in pids
    assert trained["cnn"]["steps"]["quality"]["pid"] == trained["pid"]


def test_each_epoch_has_its_time_and_its_test(trained):
    found = trained["cnn"]["epochs"]
    assert sum(epoch["seconds"] for epoch in found["curve"]) == pytest.approx(found["seconds"])
    assert all(epoch["test_s"] > 0 for epoch in found["curve"])
    assert found["curve"][-1]["quality"] == found["quality"]
    assert 0 <= found["quality"]["accuracy"] <= 1


def test_what_is_reached_ends_the_training(trained):
    assert len(trained["ended"]["curve"]) == 1


def test_ranks_end_together_by_the_mean_of_their_losses(tmp_path):
    processes = [start(RANK, rank, tmp_path / "meeting") for rank in (0, 1)]
    wanted = [[5.0, {"accuracy": 0.1}], [4.0, {"accuracy": 0.1}]]
    assert [printed(process) for process in processes] == [wanted, wanted]
