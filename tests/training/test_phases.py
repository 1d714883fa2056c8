"""The phases of steps that are really trained, in one process: all of the step, and each where time was planted."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

import pytest
from envkit.worker.measure.batch_parts import COLLATE, DECODE, READ, TRANSFORM
from envkit.worker.measure.entry_points import BACKWARD, COPY, FORWARD, INPUT, LOSS, OPTIMIZER, OTHER, PHASES

from tests.conftest import PROJECT

STEPS, BATCH = 5, 2
MEASURE = f"""
import functools, json, numpy, types
import torch
from envkit.worker import accelerator, fashion_mnist, png
from envkit.worker.measure import phases as measured
from envkit.worker.modes import Network, Options
from envkit.worker.workloads import get, loader, segmentation, translation

torch.compile = functools.partial(torch.compile, backend="eager")
random = numpy.random.default_rng(0)
arrays = {{
    f"{{part}}-{{name}}-ubyte": random.integers(0, top, shape, dtype="uint8")
    for part in ("train", "t10k")
    for name, top, shape in (("images-idx3", 256, (640, 28, 28)), ("labels-idx1", 10, 640))
}}
fashion_mnist.load = lambda data: (arrays, "d" * 64)
segmentation.PICTURES, segmentation.TEST_PICTURES = 24, 16
translation.PAIRS, translation.TEST_PAIRS = 64, 8
loader.PICTURES, loader.TEST_PICTURES = 16, 8

def phases(name, options=Options()):
    return measured.phases(name, "none", 2, {STEPS}, options)

def plain(name):
    training = get(name).prepare("none", Options())
    return [training.step() for _ in range(2 + {STEPS})][2:]

def as_it_is():
    owners = (torch.Tensor, torch.nn.functional, torch.nn.CrossEntropyLoss, Network, png, loader.Pictures)
    return [dict(vars(owner)) for owner in (*owners, torch.utils.data.DataLoader)]

before = as_it_is()
found = {{name: {{**phases(name), "plain": plain(name)}} for name in ("cnn", "segmentation", "translation", "loader")}}
found["compiled"] = phases("translation", Options(compile=True))
found["restored"] = before == as_it_is()

now = [0.0]
accelerator.time = types.SimpleNamespace(perf_counter=lambda: now[0])

def late(function):
    def call(*arguments, **options):
        now[0] += 1
        return function(*arguments, **options)
    return call

def planted(where, workload):
    class Prepared:
        def prepare(data, options):
            training = get(workload).prepare(data, options)
            plant(where, training)
            return training
    measured.get = lambda name: Prepared
    undo = png._chunks, png.decode, loader.Pictures.__getitem__, Network.placed
    try:
        return phases(workload)
    finally:
        measured.get = get
        png._chunks, png.decode, loader.Pictures.__getitem__, Network.placed = undo

def plant(where, training):
    match where:
        case "{READ}": png._chunks = late(png._chunks)
        case "{DECODE}": png.decode = late(png.decode)
        case "{TRANSFORM}": loader.Pictures.__getitem__ = late(loader.Pictures.__getitem__)
        case "{COLLATE}": training._loader.collate_fn = late(training._loader.collate_fn)
        case "{COPY}": Network.placed = late(Network.placed)
        case "{FORWARD}": training.network.model.register_forward_pre_hook(late(lambda *given: None))
        case "{LOSS}": training._loss.register_forward_pre_hook(late(lambda *given: None))
        case "{BACKWARD}": next(training.network.model.parameters()).register_hook(late(lambda gradient: None))
        case "{OPTIMIZER}": training._optimizer.register_step_pre_hook(late(lambda *given: None))
        case "{OTHER}": training.step = late(training.step)
        case "spawned": training._loader.multiprocessing_context = "spawn"

alone = "loader-w0-b{BATCH}"
found["planted"] = {{
    where: planted(where, alone)
    for where in {[READ, DECODE, TRANSFORM, COLLATE, COPY, FORWARD, LOSS, BACKWARD, OPTIMIZER, OTHER]}
}}
found["by workers"] = planted("{DECODE}", "loader-w2-b{BATCH}")
found["spawned"] = planted("spawned", "loader-w1-b{BATCH}")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """By one thread, as it may be beside other tests."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", MEASURE], cwd=PROJECT, env=variables, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def seconds(document):
    """Of all steps together: each phase and each part of a batch that takes any."""
    took = {**document["phases"], **document["batch"]["parts"]}
    return {name: sum(each) for name, each in took.items() if sum(each)}


@pytest.mark.parametrize("workload", ["cnn", "segmentation", "translation", "loader"])
def test_phases_are_nearly_all_of_a_step(found, workload):
    document = found[workload]
    took = document["phases"]
    assert set(took) == {*PHASES, OTHER}
    assert all(len(each) == STEPS for each in took.values())
    assert [sum(step) for step in zip(*took.values(), strict=True)] == pytest.approx(document["step_s"], abs=1e-5)
    shares = [other / step for other, step in zip(took[OTHER], document["step_s"], strict=True)]
    assert statistics.median(shares) < 0.02  # of single ones another process may be the reason
    for phase in (INPUT, FORWARD, LOSS, BACKWARD, OPTIMIZER):
        assert min(took[phase]) > 0, phase


@pytest.mark.parametrize("workload", ["cnn", "segmentation", "translation", "loader"])
def test_the_same_is_learnt_as_without_being_taken_apart(found, workload):
    assert found[workload]["losses"] == found[workload]["plain"]


def test_what_was_replaced_is_back(found):
    assert found["restored"]


def test_a_compiled_network_is_taken_apart_too(found):
    document = found["compiled"]
    assert document["modes"]["compile"]
    assert document["losses"] == pytest.approx(found["translation"]["losses"], rel=1e-4)
    assert min(document["phases"][FORWARD]) > 0


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        # a batch is made while the training waits for it, where the same process does both
        (READ, {INPUT: BATCH, READ: BATCH}), (DECODE, {INPUT: BATCH, DECODE: BATCH}),
        (TRANSFORM, {INPUT: BATCH, TRANSFORM: BATCH}), (COLLATE, {INPUT: 1, COLLATE: 1}),
        (COPY, {COPY: 2}),  # the batch and its labels
        (FORWARD, {FORWARD: 1}), (LOSS, {LOSS: 1}), (BACKWARD, {BACKWARD: 1}), (OPTIMIZER, {OPTIMIZER: 1}),
        (OTHER, {OTHER: 1}),
    ],
)  # fmt: skip
def test_a_delay_shows_in_its_phase_and_only_there(found, where, shown):
    """By a clock that nothing but the delay moves on, a second for each picture or step."""
    assert seconds(found["planted"][where]) == {phase: times * STEPS for phase, times in shown.items()}


def test_a_delay_in_dataloader_s_workers_is_no_part_of_the_step(found):
    document = found["by workers"]
    assert seconds(document) == {DECODE: BATCH * STEPS}
    assert document["batch"]["workers"] == 2
    assert found["loader"]["batch"]["workers"] == 2
    assert all(min(each) > 0 for each in found["loader"]["batch"]["parts"].values())


@pytest.mark.parametrize("workload", ["cnn", "segmentation", "translation", "spawned"])
def test_without_a_dataloader_that_forks_no_batch_is_taken_apart(found, workload):
    assert found[workload]["batch"] is None
    assert len(found[workload]["losses"]) == STEPS
