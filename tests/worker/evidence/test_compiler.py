"""Inductor's settings: which of its attributes a variable sets, in made-up sources and in the installed release."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from envkit.profiles import catalogue
from envkit.profiles.setting_messages import VersionDoesNotRead
from envkit.worker.evidence.compiler import PREFIX, attributes

from tests.conftest import CODE_PATH

SOURCE = """
import os
DEFAULT = "1"
plain = os.environ.get("TORCHINDUCTOR_PLAIN") == "1"
def decide():
    if "TORCHINDUCTOR_BY_FUNCTION" in os.environ:
        return int(os.environ["TORCHINDUCTOR_BY_FUNCTION"])
    return 1
threads: int | None = None if DEFAULT else decide()
forced: bool = Config(env_name_force="TORCHINDUCTOR_FORCED", default=True)
class cpp:
    chunk = int(os.environ.get("TORCHINDUCTOR_CPP_CHUNK", "512"))
    other = os.environ.get("CXX", "g++")
"""
# What torch 2.13 and 2.14 read besides, and no profile needs: it prints, looks for errors or times, concerns caches on
# other machines, or with hardware and libraries that the kit does not know.
NAMES = """
ANNOTATE_TRAINING APPLY_GUMBEL_MAX_TRICK ASSUME_UNALIGNED_FALLBACK_OUTPUT AUTOHEURISTIC_COLLECT
AUTOHEURISTIC_LOG_PATH AUTOHEURISTIC_USE AUTOTUNE_AT_COMPILE_TIME AUTOTUNE_CHOICE_DESC_REGEX
AUTOTUNE_CHOICE_NAME_REGEX AUTOTUNE_NUM_CHOICES_DISPLAYED AUTOTUNE_REMOTE_CACHE BENCHMARK_KERNEL
BUNDLED_AUTOTUNE_REMOTE_CACHE BUNDLE_TRITON_INTO_FX_GRAPH_CACHE CACHE_SDPA_CONSTRAINT CHUNKER_NUM_CHUNKS CK_DIR
COALESCE_TILING_ANALYSIS COLLECTIVE_BENCHMARK_NRUNS COLLECTIVE_BENCHMARK_TIMEOUT COMPILE_WORKER_WAIT_TIMEOUT
COMPILE_WORKER_WATCHDOG_INTERVAL CPP_ENABLE_KERNEL_CONTEXT_GUARD CPP_ENABLE_KERNEL_PROFILE CPP_MARCH
CUDAGRAPH_OR_ERROR CUTLASS_ALLOWLIST CUTLASS_DENYLIST CUTLASS_DIR CUTLASS_DYNAMIC_CLUSTER_FALLBACK
CUTLASS_DYNAMIC_CLUSTER_SHAPE CUTLASS_ENABLED_OPS CUTLASS_HASH_WITH_COMPILE_CMD CUTLASS_INSTANTIATION_LEVEL
CUTLASS_PRESCREENING DEBUG_FUSION DECOMPOSE_SHARD_DIM_ALLTOALL DECOMPOSE_SORT_OPS DEFAULT_AUTOTUNE_REP
DEFAULT_AUTOTUNE_WARMUP DELAY_REALIZE_CHEAP_OUTPUTS DISABLED_PASSES DISTORT_BENCHMARKING_RESULT
DISTRIBUTED_MAX_AUTOTUNE_GEMM EMIT_POINTER_RANGE_32 EMULATE_PRECISION_CASTS_ON_SAVED_TENSORS ENABLED_METRIC_TABLES
FILE_LOCK_TIMEOUT FORCE_FILTER_REDUCTION_CONFIGS FX_GRAPH_CACHE_DEFAULT FX_GRAPH_REMOTE_CACHE FX_WRAPPER
INCREMENTAL_AUTOTUNE KEEP_STATIC_CUBIN_RAW MAX_AUTOTUNE_BWD_INPUT_CONV_BACKENDS
MAX_AUTOTUNE_BWD_WEIGHT_CONV_BACKENDS MAX_AUTOTUNE_PRUNE_CHOICES_BASED_ON_SHARED_MEM
MAX_AUTOTUNE_REPORT_CHOICES_STATS MIX_ORDER_REDUCTION_ALLOW_MULTI_STAGES MIX_ORDER_REDUCTION_AUTOTUNE_SPLIT_SIZE
NON_BLOCKING_REMOTE_CACHE_WRITE NVGEMM_MAX_PROFILING_CONFIGS NVGEMM_SUPPLEMENT_CONFIGS NVGEMM_SWAP_AB
OPTIMIZE_SCATTER_UPON_CONST_TENSOR ORIGAMI ORIGAMI_TOPK PIPELINE_GEMM_AUTOTUNING PRECOMPILATION_TIMEOUT_SECONDS
PROFILE PROFILE_OUTPUT PROFILE_WITH_DO_BENCH_USING_PROFILING QUIESCE_ASYNC_COMPILE_POOL RUNTIME_TRITON_NAN_ASSERTS
RUN_JIT_POST_COMPILE_HOOK SAVE_ARGS STATIC_LAUNCH_USER_DEFINED_TRITON_KERNELS STRICT_STATIC_CUDA_LAUNCHER TLX_MODE
TRITON_DISABLE_DEVICE_DETECTION TRITON_PROTON_GROUP_BY_SM TRITON_PROTON_OUTPUT_DIR TRITON_PROTON_PER_CTA_OCCUPANCY
TRITON_PROTON_PROFILING TRITON_PROTON_SPLIT_INVOCATIONS UNIQUE_KERNEL_NAMES UNIQUE_USER_KERNEL_NAMES
USE_EXPERIMENTAL_BENCHMARKER USE_LAUNCH_METADATA_SCHEMA USE_TORCH_PROFILER_BENCHMARKER WARN_MIX_LAYOUT
WORKER_LOGPATH WORKER_SUPPRESS_LOGGING WRITE_ARE_DETERMINISTIC_ALGORITHMS_ENABLED
"""
NOT_FOR_PROFILES = {PREFIX + name for name in NAMES.split()}
PROBE = """
import json
import torch
from envkit.worker.evidence import compiler
found = [compiler.probe()]
torch.compile(lambda tensor: tensor + 1, backend="eager")(torch.ones(4))
found.append(compiler.probe())
torch._dynamo.reset()
torch._dynamo.utils.counters.clear()
torch.compile(lambda tensor: tensor * 2)(torch.ones(4))
print(json.dumps([*found, compiler.probe()]))
"""


def of_another_release(name, versions):
    problems = catalogue.check({name: "1"}, {"inductor"}, versions)
    return any(isinstance(problem.wrong, VersionDoesNotRead) for problem in problems)


def test_which_attribute_a_variable_sets():
    assert attributes(SOURCE) == {
        "TORCHINDUCTOR_PLAIN": "plain",
        "TORCHINDUCTOR_BY_FUNCTION": "threads",
        "TORCHINDUCTOR_FORCED": "forced",
        "TORCHINDUCTOR_CPP_CHUNK": "cpp.chunk",
    }


def test_the_catalogue_has_what_the_installed_release_reads():
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations
    source = Path(spec.submodule_search_locations[0], "_inductor/config.py").read_text()
    described = [name for name in catalogue.load() if name.startswith(PREFIX)]
    installed = {"inductor": importlib.metadata.version("torch")}
    known = {name for name in described if not of_another_release(name, installed)}
    read = attributes(source).keys()
    assert not known - read
    assert not read - known - NOT_FOR_PROFILES
    assert not known & NOT_FOR_PROFILES


def test_settings_are_those_in_force_where_inductor_compiles(tmp_path):
    given = {
        "TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": "1024", "TORCHINDUCTOR_SIZE_ASSERTS": "0",
        "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": "aten", "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_OF_ANOTHER_RELEASE": "1",
    }  # fmt: skip
    places = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": CODE_PATH, "HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", PROBE], env={"PATH": os.environ["PATH"], **places, **given}, cwd="/",
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    nothing, eager, inductor = json.loads(result.stdout)
    assert nothing == {"backend": "none", "settings": {}}
    assert eager == {"backend": "other", "settings": {}}
    assert inductor == {
        "backend": "inductor",
        "settings": {
            "TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": 1024, "TORCHINDUCTOR_SIZE_ASSERTS": 0,
            "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS": "ATEN", "TORCHINDUCTOR_COMPILE_THREADS": 1,
            "TORCHINDUCTOR_FX_GRAPH_CACHE": 0,
        },
    }  # fmt: skip


def test_what_only_later_releases_read():
    assert of_another_release("TORCHINDUCTOR_REORDER_LOCALITY_TRAINING", {"inductor": "2.13.0+cpu"})
    assert not of_another_release("TORCHINDUCTOR_REORDER_LOCALITY_TRAINING", {"inductor": "2.14.0"})
