from __future__ import annotations

from pathlib import Path

import pytest
from envkit.worker import gpus, nvml
from envkit.worker.gpus import built_for, hidden, too_old, visible
from envkit.worker.nvml import Nvml, Unavailable

from tests.nvidia import UUIDS, Library

FIRST = UUIDS[0]


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
    assert (found["usable"], found["problem"], found["fix"]) == (2, None, None)
    assert (found["torch_cuda"], found["driver"], found["driver_cuda"]) == ("13.0", "580.95.05", "13.0")
    assert [one["uuid"] for one in found["devices"]] == list(UUIDS)
    assert "lo" in found["interfaces"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert gpus.look()["usable"] == 1


@pytest.mark.parametrize(
    ("given", "setting", "problem"),
    [
        ({"torch": None}, None, "its torch is a build without CUDA"),
        ({"torch": None, "silent": "no NVIDIA driver is seen"}, None, "its torch is a build without CUDA"),
        ({"silent": "no NVIDIA driver is seen"}, None, "no NVIDIA driver is seen"),
        ({"count": 0}, None, "NVIDIA's driver 580.95.05 has no GPU to show"),
        (
            {"nvmlSystemGetCudaDriverVersion_v2": 12080}, None,
            "NVIDIA's driver 580.95.05 is for CUDA 12.8, and its torch was built for 13.0",
        ),
        ({}, "", "CUDA_VISIBLE_DEVICES='' hides all GPUs"),
        ({}, "-1", "CUDA_VISIBLE_DEVICES='-1' hides all GPUs"),
        ({}, "0,0", "CUDA_VISIBLE_DEVICES='0,0' names GPU 0 twice, which hides all"),
        ({}, "7", "CUDA_VISIBLE_DEVICES='7' names GPU 7, and the machine has GPU 0 alone"),
        ({"count": 2}, "0,2", "CUDA_VISIBLE_DEVICES='0,2' names GPU 2, and the machine has GPUs 0 to 1"),
    ],
)  # fmt: skip
def test_why_there_is_none(machine, monkeypatch, given, setting, problem):
    machine(**given)
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    found = gpus.look()
    assert (found["usable"], found["problem"]) == (0, problem)
    assert found["fix"]
    assert found["by_setting"] is problem.startswith("CUDA_VISIBLE_DEVICES=")


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
    seen = f"no NVIDIA driver is seen ({nvml.LIBRARY} can't be loaded)"
    assert found["problem"] in ("its torch is a build without CUDA", seen)
