"""``envkit breakdown`` with real training: what PyTorch's profiler and the kernel's counters really tell."""

from __future__ import annotations

import json

import pytest
from envkit.analysis.operator_times import ENOUGH

STEPS = 2


def test_operators_of_real_training_under_a_profile(cli):
    result = cli("breakdown", "glibc-retain", "--data", "synthetic", "--processes", 1, "--steps", STEPS,
                 "--warmup-steps", 1, "--json")  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["not_in_effect"] == []
    assert document["reasons"] == [f"nothing can be concluded from 1 process each: use {ENOUGH} (--processes)"]
    for side in document["profiles"]:
        operators = {one["name"]: one for one in side["operators"]}
        # two convolutions, forwards and backwards, and two linear layers: the first's output is 64 x 32 x 28 x 28
        assert operators["aten::conv2d"]["calls"] == operators["aten::convolution_backward"]["calls"] == 2
        assert operators["aten::addmm"]["calls"] == 2
        assert operators["aten::conv2d"]["allocated_bytes"] == 4 * 64 * (32 * 28 * 28 + 64 * 14 * 14)
        whole = sum(one["ms"]["median"] for one in side["operators"])
        assert whole == pytest.approx(side["profiled_ms"]["median"], rel=0.1)
        assert side["user_ms"]["median"] > 0
        assert side["step_ms"]["median"] > 0
    # the baseline hands its large blocks back to the kernel after each use
    assert document["profiles"][0]["faults"]["median"] > 1000


def test_operators_of_the_forward_pass_alone(cli):
    result = cli("breakdown", "baseline", "--forward", "--data", "synthetic", "--processes", 1, "--steps", STEPS,
                 "--warmup-steps", 1, "--json")  # fmt: skip
    assert result.returncode == 0, result.stderr
    (side,) = json.loads(result.stdout)["profiles"]
    operators = {one["name"]: one for one in side["operators"]}
    assert operators["aten::conv2d"]["calls"] == operators["aten::max_pool2d"]["calls"] == 2
    assert operators["aten::conv2d"]["allocated_bytes"] == 4 * 64 * (32 * 28 * 28 + 64 * 14 * 14)
    assert not [name for name in operators if "backward" in name.lower() or "ptimizer" in name or "loss" in name]
    whole = sum(one["ms"]["median"] for one in side["operators"])
    assert whole == pytest.approx(side["forward_ms"]["median"], rel=0.1)
    assert side["forward_ms"]["median"] < side["profiled_ms"]["median"]


def test_phases_of_real_training(cli):
    result = cli("breakdown", "baseline", "--phases", "--workload", "loader", "--processes", 1, "--steps", STEPS,
                 "--warmup-steps", 1, "--json")  # fmt: skip
    assert result.returncode == 0, result.stderr
    (side,) = json.loads(result.stdout)["profiles"]
    assert sum(one["median"] for one in side["phases"].values()) == pytest.approx(side["step_ms"]["median"], rel=0.02)
    assert side["phases"]["backward"]["median"] > 0
    assert side["loader"]["workers"] == 2
    assert side["loader"]["batch"]["decode"]["median"] > 0
