"""PyTorch's build and its own idea of the threads it has."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from envkit.worker.evidence.memory import BLOCK_BYTES, advised
from envkit.worker.evidence.symbols import imports, torchs_base


def probe() -> dict[str, object]:
    torch = sys.modules["torch"]  # the workload has imported it; a probe must not be the first to do so
    return {
        "version": torch.__version__,
        "num_threads": torch.get_num_threads(),
        "threads_rule": _threads_rule(torch),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": _cpu_capability(torch),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "huge_page_tensors": _asks_for_huge_pages(torch),
    }


def _threads_rule(torch: ModuleType) -> str | None:
    """Return PyTorch's rule for its number of threads without a variable. No rule counts a CPU quota.

    ``mkl`` takes MKL's number, which follows the affinity mask (aten/src/ATen/ParallelOpenMP.cpp). Without MKL,
    ``machine`` takes all cores of the machine (c10/core/thread_pool.cpp). Since 2.14 ``affinity`` takes at most the
    CPUs of the affinity mask, for which it asks the system (https://github.com/pytorch/pytorch/pull/194605).
    """
    library = torchs_base()
    if _has_mkl(torch):
        return "mkl"
    return None if library is None else "affinity" if imports(library, "sched_getaffinity") else "machine"


def _has_mkl(torch: ModuleType) -> bool:
    mkl = getattr(torch.backends, "mkl", None)
    return mkl is not None and bool(mkl.is_available())


def _cpu_capability(torch: ModuleType) -> str | None:
    """Return the instructions that its own code uses, as AVX2; None where it does not say so, as 2.0 did not."""
    cpu = getattr(torch.backends, "cpu", None)
    return None if cpu is None else str(cpu.get_cpu_capability())


def _asks_for_huge_pages(torch: ModuleType) -> bool:
    """Return whether the kernel was asked for huge pages (madvise) where a new, large tensor is.

    An allocator other than glibc's may take it from memory for which numpy asked before: this is then wrongly true.
    """
    tensor = torch.empty(BLOCK_BYTES, dtype=torch.uint8, device="cpu")  # whatever the program's own default
    return advised(Path("/proc/self/smaps").read_text(errors="replace"), tensor.data_ptr() + BLOCK_BYTES // 2)
