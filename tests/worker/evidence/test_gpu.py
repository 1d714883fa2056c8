"""What a worker sees of its GPU, as far as that can be tried without one."""

from __future__ import annotations

import importlib

import pytest
from envkit.worker.evidence import gpu

# In the shape of torch.cuda.memory._snapshot()
SETTINGS = {
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:128", "max_split_size": 128 * 2**20,
    "garbage_collection_threshold": 0.8, "expandable_segments": True, "pinned_num_register_threads": 1,
    "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False, "roundup_power2_divisions": {"1": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def torch():
    """Not imported where tests are only collected, which every process of them does."""
    return importlib.import_module("torch")


def test_training_on_a_cpu_says_nothing_of_gpus(torch):
    assert not torch.cuda.is_initialized()
    assert gpu.probe() == {}


def test_what_the_allocator_says():
    grown = {"segments": [{"is_expandable": False}, {"is_expandable": True}], "allocator_settings": SETTINGS}
    found = gpu.allocator(grown)
    assert found["expandable_segments"] is True
    assert found["settings"] == {
        "expandable_segments": True, "garbage_collection_threshold": 0.8, "pinned_num_register_threads": 1,
        "pinned_use_cuda_host_register": False, "release_lock_on_cudamalloc": False, "max_split_size_mb": 128,
    }  # fmt: skip


@pytest.mark.parametrize("most", [-1, 2**63 - 1])
def test_no_limit_is_no_setting(most):
    found = gpu.allocator({"segments": [], "allocator_settings": {"max_split_size": most}})
    assert found == {"settings": {}, "expandable_segments": False}


def test_an_older_torch_tells_no_settings():
    assert gpu.allocator({"segments": [{}]}) == {"settings": {}, "expandable_segments": False}


def test_float32_keeps_its_digits_here(torch):
    assert gpu.shortens_products(torch, "cpu") is False
    assert gpu.shortens_convolutions(torch, "cpu") is False


def test_what_tf32_loses_is_seen_and_rounding_is_not(torch):
    factor = torch.full((4, 4), gpu.LONG)
    bits = factor.view(torch.int32)
    tf32 = ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)  # 10 bits of a fraction, of the 23 there are
    assert gpu.shortened(tf32)
    assert gpu.shortened(factor.bfloat16().float())
    assert not gpu.shortened(factor * (1 + 2**-20))
