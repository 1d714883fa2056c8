"""What PyTorch says of itself, by releases that say less than others too."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from envkit.worker.evidence import torch_build


@pytest.fixture
def torch():
    """PyTorch, which no process imports that only collects this test."""
    import torch

    return torch


def test_what_pytorch_says_of_itself(torch):
    found = torch_build.probe()
    assert found["version"] == torch.__version__
    assert found["cpu_capability"] == torch.backends.cpu.get_cpu_capability()


def test_by_which_rule_it_counts_its_threads(torch, monkeypatch, tmp_path):
    assert torch_build.probe()["threads_rule"] == "mkl"  # as all wheels for x86-64
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert torch_build.probe()["threads_rule"] == "machine"  # before 2.14
    library = tmp_path / "libc10.so"
    library.write_bytes(b"\0pthread_create\0sched_getaffinity\0")  # as the ARM wheel of 2.14
    monkeypatch.setattr(torch_build, "torchs_base", lambda: str(library))
    assert torch_build.probe()["threads_rule"] == "affinity"


def test_a_release_that_does_not_tell_its_instructions(torch, monkeypatch):
    monkeypatch.setattr(torch, "backends", SimpleNamespace())  # as PyTorch 2.0
    found = torch_build.probe()
    assert found["cpu_capability"] is None
    assert found["version"] == torch.__version__
