from __future__ import annotations

from pathlib import Path

import pytest
from envkit.messages import from_json
from envkit.worker import gpus, nvml
from envkit.worker.gpus import VISIBLE, built_for, hidden, too_old, visible
from envkit.worker.messages.gpus import (
    AllHidden,
    BuiltWithoutCuda,
    DriverTooOld,
    DriverUnusable,
    HiddenBySetting,
    NamesGpuTwice,
    NamesMissingGpu,
    NoDriverSeen,
    NoGpu,
)
from envkit.worker.nvml import Nvml, Unavailable

from tests.nvidia import UUIDS, Library

FIRST = UUIDS[0]
SILENT = NoDriverSeen(nvml.LIBRARY)


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many GPUs and a torch for CUDA 13.0 (None: for CPUs); ``silent``: its driver's excuse."""

    def make(count=1, torch="13.0", silent=None, **library):
        def start():
            if silent is not None:
                raise Unavailable(silent)
            return Nvml(Library(count, **library))

        monkeypatch.setattr(nvml, "start", start)
        monkeypatch.setattr(gpus, "torch_cuda", lambda: torch)

    return make


def test_what_can_be_used(machine, monkeypatch):
    machine(2)
    found = gpus.look()
    assert (found["usable"], found["problem"]) == (2, None)
    assert (found["torch_cuda"], found["driver"], found["driver_cuda"]) == ("13.0", "580.95.05", "13.0")
    assert [one["uuid"] for one in found["devices"]] == list(UUIDS)
    assert "lo" in found["interfaces"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert gpus.look()["usable"] == 1


@pytest.mark.parametrize(
    ("given", "setting", "problem"),
    [
        ({"torch": None}, None, BuiltWithoutCuda()),
        ({"torch": None, "silent": SILENT}, None, BuiltWithoutCuda()),
        ({"silent": SILENT}, None, DriverUnusable(SILENT)),
        ({"count": 0}, None, NoGpu("580.95.05")),
        ({"nvmlSystemGetCudaDriverVersion_v2": 12080}, None, DriverTooOld("580.95.05", "12.8", "13.0")),
        ({}, "", HiddenBySetting(AllHidden(VISIBLE, ""), VISIBLE)),
        ({}, "-1", HiddenBySetting(AllHidden(VISIBLE, "-1"), VISIBLE)),
        ({}, "0,0", HiddenBySetting(NamesGpuTwice(VISIBLE, "0,0", "0"), VISIBLE)),
        ({}, "7", HiddenBySetting(NamesMissingGpu(VISIBLE, "7", "7", count=1), VISIBLE)),
        ({"count": 2}, "0,2", HiddenBySetting(NamesMissingGpu(VISIBLE, "0,2", "2", count=2), VISIBLE)),
    ],
)
def test_why_there_is_none(machine, monkeypatch, given, setting, problem):
    machine(**given)
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    found = gpus.look()
    assert (found["usable"], from_json(found["problem"])) == (0, problem)
    assert found["by_setting"] is isinstance(problem, HiddenBySetting)


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("from typing import Optional\n\n__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip = None\n", None),
        ("__version__ = '2.13.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\n", "13.0"),
        ("__version__ = '2.3.0'\ndebug = False\ncuda = '12.1'\ngit_version = 'x'\n", "12.1"),
        ("__version__ = '2.13.0+rocm6.4'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.4'\n", None),
        ("", None),
    ],
)
def test_what_torch_was_built_for(text, cuda):
    assert built_for(text) == cuda


def test_this_torch_says_what_its_own_file_says():
    import torch

    assert gpus.torch_cuda() == torch.version.cuda


@pytest.mark.parametrize(
    ("driver", "torch", "old"),
    [("12.8", "13.0", True), ("12.2", "12.8", False), ("13.0", "12.8", False), (None, "12.8", False)],
)
def test_a_driver_of_the_same_major_version_will_do(driver, torch, old):
    assert too_old(driver, torch) is old


@pytest.mark.parametrize(
    ("setting", "count"),
    [
        (None, 2), ("0", 1), ("1,0", 2), ("", 0), ("-1", 0), ("0,-1,1", 1), ("0,5,1", 1), ("0,0", 0), ("0,5,0", 1),
        (f"0,{FIRST}", 1),
        (FIRST, 1), (FIRST[:12], 1), ("GPU-none", 0), ("MIG-0a1b", 1), (" 1 , 0 ", 2), ("x", 0),
    ],
)  # fmt: skip
def test_how_many_cuda_would_see(setting, count):
    assert visible(setting, UUIDS) == count


@pytest.mark.parametrize("setting", [None, "0", "1,0", FIRST, "0,-1,9", "MIG-0a1b"])
def test_what_names_gpus_that_are_there(setting):
    assert hidden(setting, UUIDS) is None


def test_a_machine_without_any_driver_is_looked_at_for_real():
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("there is a driver on this machine")
    found = gpus.look()
    assert (found["driver"], found["devices"], found["usable"]) == (None, [], 0)
    assert from_json(found["problem"]) in (BuiltWithoutCuda(), DriverUnusable(NoDriverSeen(nvml.LIBRARY)))
