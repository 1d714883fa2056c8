"""Training without PyTorch's compiler: the same training, and the compiler is there as soon as it is wanted."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

TRAIN = """
import json, sys
if sys.argv[1] == "with": import torch._dynamo
import numpy
from envkit.worker import fashion_mnist
from envkit.worker.modes import USUAL, Options
from envkit.worker.workloads import get
random = numpy.random.default_rng(0)
arrays = {
    f"{part}-{name}-ubyte": random.integers(0, top, shape, dtype="uint8")
    for part in ("train", "t10k")
    for name, top, shape in (("images-idx3", 256, (300, 28, 28)), ("labels-idx1", 10, 300))
}
fashion_mnist.load = lambda data: (arrays, "d" * 64)
training = get("cnn").prepare("synthetic", USUAL)
losses = [training.step() for _ in range(3)]
imported = "torch._dynamo.eval_frame" in sys.modules
import torch
compiled = torch.compile(torch.nn.Linear(2, 2), backend="eager")
print(json.dumps([losses, imported, tuple(compiled(torch.ones(1, 2)).shape)]))
"""


@pytest.fixture(scope="module")
def trained():
    """By one thread, as it may be beside other tests."""

    def run(how):
        argv, variables = [sys.executable, "-c", TRAIN, how], {**os.environ, "OMP_NUM_THREADS": "1"}
        result = subprocess.run(argv, cwd=PROJECT, env=variables, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    return {how: run(how) for how in ("with", "without")}


STAND_IN = """
import sys
from envkit.worker import compiler
compiler.leave_out()
import torch
assert torch._dynamo.disable(len) is len and torch._dynamo.disable(recursive=False)(len) is len
assert "torch._dynamo.eval_frame" not in sys.modules
compiler.bring_back()
import torch._dynamo.utils as first
assert torch._dynamo is sys.modules["torch._dynamo"] and torch._dynamo.utils is first
assert torch._dynamo.__file__
"""


def test_the_stand_in_marks_functions_and_goes_when_it_is_told():
    result = subprocess.run([sys.executable, "-c", STAND_IN], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_losses_are_equal_to_the_last_bit(trained):
    assert trained["without"][0] == trained["with"][0]


def test_it_is_not_imported_until_something_is_compiled(trained):
    assert [trained[how][1] for how in ("with", "without")] == [True, False]
    assert [trained[how][2] for how in ("with", "without")] == [[1, 2]] * 2
