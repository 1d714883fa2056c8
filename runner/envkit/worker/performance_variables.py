"""Which environment variables can change how fast or how exactly training runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PREFIXES = (
    # OpenMP runtimes and the math libraries that use them
    "OMP_", "KMP_", "GOMP_", "LIBOMP_", "MKL_", "OPENBLAS_", "BLIS_", "ONEDNN_", "DNNL_", "ATEN_",
    "LRU_CACHE_CAPACITY",
    # allocators
    "MALLOC_", "JEMALLOC_", "_RJEM_", "TCMALLOC_", "MIMALLOC_", "mimalloc_", "PYTHONMALLOC", "THP_MEM_ALLOC",
    # frameworks and accelerators
    "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "NCCL_", "CUDA_", "CUBLAS_", "CUBLASLT_", "CUDNN_", "NVIDIA_TF32_",
    # the loader
    "LD_PRELOAD", "LD_AUDIT", "LD_BIND_NOW", "GLIBC_TUNABLES",
    # a fixed seed would give all samples one layout of Python's dictionaries: lucky or unlucky, it looks like an effect
    "PYTHONHASHSEED",
)  # fmt: skip
PRELOAD = "LD_PRELOAD"
# Values by which an allocator keeps what a program frees, of jemalloc, glibc (from 1 GB on), mimalloc and tcmalloc.
KEEPS_FREED_MEMORY = {
    "MALLOC_CONF": re.compile(r"(?:^|,)dirty_decay_ms:-1(?:,|$)"),
    "GLIBC_TUNABLES": re.compile(r"(?:^|:)glibc\.malloc\.trim_threshold=\d{10,}(?::|$)"),
    "MALLOC_TRIM_THRESHOLD_": re.compile(r"^\d{10,}$"),
    "MIMALLOC_ALLOW_DECOMMIT": re.compile(r"^(?:0|no|off|false)$", re.IGNORECASE),
    "MIMALLOC_PURGE_DELAY": re.compile(r"^-1$"),
    "TCMALLOC_RELEASE_RATE": re.compile(r"^0(?:\.0*)?$"),
}
# Those of them that say where things are, and not how work is done: a batch job can't do without.
WHERE = frozenset({
    "CUDA_CACHE_PATH", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_MPS_LOG_DIRECTORY", "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR", "TORCH_HOME",
})  # fmt: skip


def is_performance_variable(name: str) -> bool:
    """Whether the worker must not inherit this variable from its caller."""
    return name.startswith(PREFIXES)


def is_unlisted(name: str) -> bool:
    """Whether a user's own command must not either, unless it is asked for."""
    return is_performance_variable(name) and name not in WHERE


def keeps_freed_memory(variables: Mapping[str, str]) -> str | None:
    """Return the name of a variable that has an allocator keep freed memory, or None."""
    return next((name for name, value in KEEPS_FREED_MEMORY.items() if value.search(variables.get(name, ""))), None)


def preloading(variables: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """A profile's ``variables``; where they preload libraries, those of the caller's that are ``kept`` come after them.

    These (a site's tracer, for example) are then in the profile's processes as they are in the baseline's.
    """
    both = [given[PRELOAD] for given in (variables, kept) if given.get(PRELOAD)]
    return {**variables, PRELOAD: ":".join(both)} if len(both) > 1 else {**variables}


def adds_to(given: str, wanted: str) -> bool:
    """Whether what is preloaded is what was wanted, and then more: stdbuf and tracers add themselves so.

    What comes before it would take its place.
    """
    wanted_first = preloaded(wanted)
    return given != wanted and preloaded(given)[: len(wanted_first)] == wanted_first


def preloaded(value: str) -> list[str]:
    """The libraries that LD_PRELOAD names (ld.so(8))."""
    return [entry for entry in value.replace(" ", ":").split(":") if entry]


def asked_for(names: Iterable[str]) -> dict[str, str]:
    """The variable by which the evidence hook in a user's command is asked for the values of ``names``, a profile's.

    It tells those of sensitive ones anyway, and PYTHONPATH is its own.
    """
    others = " ".join(name for name in names if not is_performance_variable(name) and name != "PYTHONPATH")
    return {"ENVKIT_NAMES": others} if others else {}
