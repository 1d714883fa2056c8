"""Which of the caller's variables a user's command gets, and how lists of settings are joined."""

from __future__ import annotations

import pytest
from envkit.profiles import catalogue
from envkit.profiles.environment import of_caller
from envkit.worker.performance_variables import (
    SPEED,
    is_needed,
    is_performance_variable,
    is_withheld,
    joined,
    says_where,
    settings,
    shared,
    without,
)

PROFILE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.trim_threshold=7"}
TLS = "glibc.rtld.optional_static_tls=8192"


@pytest.mark.parametrize("name", [
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "MKL_THREADING_LAYER", "KMP_DUPLICATE_LIB_OK", "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE", "NCCL_IB_DISABLE", "CUBLAS_WORKSPACE_CONFIG", "NCCL_P2P_DISABLE", "GLIBC_TUNABLES",
    "MALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUDA_DEVICE_MAX_CONNECTIONS", "TORCH_NCCL_BLOCKING_WAIT",
])  # fmt: skip
def test_what_decides_whether_a_program_runs_is_passed_on_and_told(name):
    assert is_needed(name)
    assert not is_withheld(name)
    assert not says_where(name)


@pytest.mark.parametrize("name", [
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_VERSION",
    "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "NCCL_VERSION", "TORCH_HOME", "TORCH_EXTENSIONS_DIR", "CUDA_CACHE_PATH",
    "TORCHINDUCTOR_CACHE_DIR", "PYTORCH_VERSION",
])  # fmt: skip
def test_what_says_where_things_are_is_passed_on_without_a_word(name):
    assert says_where(name)
    assert not is_needed(name)
    assert not is_withheld(name)


@pytest.mark.parametrize("name", [
    "OMP_NUM_THREADS", "KMP_BLOCKTIME", "MKL_NUM_THREADS", "LD_PRELOAD", "MALLOC_ARENA_MAX", "NCCL_ALGO",
    "NCCL_MIN_NCHANNELS", "CUDA_LAUNCH_BLOCKING", "TORCHINDUCTOR_MAX_AUTOTUNE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "NVIDIA_TF32_OVERRIDE", "PYTHONHASHSEED", "ONEDNN_MAX_CPU_ISA", "MIMALLOC_PURGE_DELAY",
])  # fmt: skip
def test_what_sets_how_fast_it_runs_is_withheld(name):
    assert is_withheld(name)


@pytest.mark.parametrize("name", ["PYTHONPATH", "LD_LIBRARY_PATH", "HF_HOME", "SSL_CERT_FILE", "GLOO_SOCKET_IFNAME"])
def test_others_are_inherited_anyway(name):
    assert not is_performance_variable(name)
    assert not is_withheld(name)


def test_each_known_variable_is_of_one_kind():
    for name in filter(is_performance_variable, catalogue.load()):
        assert [says_where(name), is_needed(name), is_withheld(name)].count(True) == 1, name


def test_each_pattern_of_speed_is_one_of_a_switched_variable():
    for pattern in SPEED:
        assert is_withheld(pattern.replace("*", "X")), pattern


def test_lists_are_joined_and_the_profile_counts():
    kept = {"GLIBC_TUNABLES": f"{TLS}:glibc.malloc.hugetlb=2"}
    found = joined(PROFILE, kept)
    assert found == {"GLIBC_TUNABLES": f"{TLS}:{PROFILE['GLIBC_TUNABLES']}"}
    assert joined(found, kept) == found
    assert without(found, kept) == PROFILE


def test_a_malformed_setting_does_not_spoil_those_of_the_profile():
    kept = {"GLIBC_TUNABLES": f"nonsense:a=b=c::{TLS}"}
    assert joined(PROFILE, kept)["GLIBC_TUNABLES"] == f"{TLS}:{PROFILE['GLIBC_TUNABLES']}"


def test_lists_of_pytorch_have_commas_in_brackets():
    found = settings("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2,>:8], max_split_size_mb:64")
    assert found == {
        "roundup_power2_divisions": "roundup_power2_divisions:[256:1,512:2,>:8]",
        "max_split_size_mb": "max_split_size_mb:64",
    }


def test_all_arms_have_the_same_settings_of_the_caller():
    kept = {"GLIBC_TUNABLES": f"{TLS}:glibc.malloc.hugetlb=2", "MALLOC_CONF": "narenas:1", "OMP_NUM_THREADS": "2"}
    assert shared(kept, [{}, PROFILE]) == {**kept, "GLIBC_TUNABLES": TLS}
    only = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"}
    assert shared(only, [{}, PROFILE]) == {}
    assert shared(only, [{}]) == only


def test_what_an_earlier_profile_left_in_a_list_is_not_the_callers():
    left = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296:glibc.malloc.hugetlb=1"
    assert of_caller({"GLIBC_TUNABLES": left, "HOME": "/root"}) == {"HOME": "/root"}
    assert of_caller({"GLIBC_TUNABLES": f"{TLS}:{left}"}) == {"GLIBC_TUNABLES": TLS}
    assert of_caller({"GLIBC_TUNABLES": left}, unchanged=["GLIBC_TUNABLES"]) == {"GLIBC_TUNABLES": left}
