"""Modes in which a network is really trained, in a process of its own; for torch.compile without a compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

TRAIN = """
import functools, json
import torch
from torch import nn
from envkit.worker.modes import Network, Options
torch.compile = functools.partial(torch.compile, backend="eager")
def trained(options):
    torch.manual_seed(1)
    network = Network(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)), options)
    images = network.laid_out(torch.rand(2, 3, 8, 8))
    scores = network(images)
    scores.sum().backward()
    last = images.is_contiguous(memory_format=torch.channels_last)
    return {"seen": network.modes(), "scores": scores.tolist(), "format": str(scores.dtype), "last": last}
print(json.dumps({
    "plain": trained(Options()), "bf16": trained(Options("bf16-autocast")),
    "channels-last": trained(Options(channels_last=True)), "compiled": trained(Options(compile=True)),
}))
"""
PLAIN = {"precision": "fp32", "compile": False, "channels_last": False, "device": "cpu"}


def train(**variables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    result = subprocess.run([sys.executable, "-c", TRAIN], cwd=PROJECT, env=environment, capture_output=True,
                            text=True, check=False)  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def trained():
    return train()


@pytest.mark.parametrize(
    ("name", "mode"),
    [("plain", {}), ("bf16", {"precision": "bf16-autocast"}), ("channels-last", {"channels_last": True}),
     ("compiled", {"compile": True})],
)  # fmt: skip
def test_each_mode_is_seen(trained, name, mode):
    assert trained[name]["seen"] == {**PLAIN, **mode}
    assert trained[name]["format"] == "torch.float32"
    assert trained[name]["last"] == (name == "channels-last")
    for scores, plain in zip(trained[name]["scores"], trained["plain"]["scores"], strict=True):
        assert scores == pytest.approx(plain, abs=0.02)


def test_bf16_rounds(trained):
    assert trained["bf16"]["scores"] != trained["plain"]["scores"]


def test_torch_compile_that_was_switched_off_is_seen():
    """As by a profile that sets this variable: what was measured would not be what was asked for."""
    assert train(TORCHDYNAMO_DISABLE="1")["compiled"]["seen"] == PLAIN
