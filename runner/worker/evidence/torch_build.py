"""PyTorch's build and its own idea of the threads it has."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

# Larger than glibc's limit for blocks of their own ever grows by itself (32 MiB), so that the mapping is a new one.
# Another allocator may take it from memory for which numpy asked for huge pages before: there it may say yes wrongly.
TENSOR_BYTES = 64 << 20
MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ", re.MULTILINE)


def probe() -> dict[str, Any]:
    torch = sys.modules["torch"]  # the workload has imported it; a probe must not be the first to do so
    return {
        "version": torch.__version__,
        "num_threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "huge_page_tensors": _asks_for_huge_pages(torch),
    }


def _asks_for_huge_pages(torch: Any) -> bool:
    """Whether the kernel was asked for huge pages (madvise) where a new, large tensor is."""
    tensor = torch.empty(TENSOR_BYTES, dtype=torch.uint8, device="cpu")  # whatever the program's own default
    return advised(Path("/proc/self/smaps").read_text(errors="replace"), tensor.data_ptr() + TENSOR_BYTES // 2)


def advised(smaps: str, address: int) -> bool:
    """Whether the mapping at ``address`` has the flag ``hg`` (kernel documentation, filesystems/proc, VmFlags)."""
    for match in MAPPING.finditer(smaps):
        if int(match[1], 16) <= address < int(match[2], 16):
            flags = re.search(r"^VmFlags: (.*)$", smaps[match.end() :], re.MULTILINE)
            return flags is not None and "hg" in flags[1].split()
    return False
