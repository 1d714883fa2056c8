"""PyTorch's build and its own idea of the threads it has."""

from __future__ import annotations

import sys
from typing import Any


def probe() -> dict[str, Any]:
    torch = sys.modules["torch"]  # the workload has imported it; a probe must not be the first to do so
    return {
        "version": torch.__version__,
        "num_threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul_precision": torch.get_float32_matmul_precision(),
    }
