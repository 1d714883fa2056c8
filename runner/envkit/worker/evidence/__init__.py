"""What a worker sees of its own environment. A new probe is a module here with ``probe()`` and a line in ``PROBES``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from envkit.worker.evidence import (
    gpu,
    limits,
    malloc,
    math_libraries,
    memory,
    nccl,
    openmp,
    threads,
    torch_build,
    variables,
)

PROBES: dict[str, Callable[[], dict[str, Any]]] = {
    "openmp": openmp.probe,
    "malloc": malloc.probe,
    "memory": memory.probe,
    "threads": threads.probe,
    "limits": limits.probe,
    "onednn": math_libraries.onednn,
    "mkl": math_libraries.mkl,
    "torch": torch_build.probe,
    "gpu": gpu.probe,
    "nccl": nccl.probe,
    "variables": variables.probe,
}


def collect() -> dict[str, Any]:
    """Every probe's findings by its name, and how long collecting took (seconds).

    A probe that fails says so in its place and does not take the sample with it: what a profile expects of it then
    counts as not seen.
    """
    start = time.perf_counter()
    found: dict[str, Any] = {}
    for name, probe in PROBES.items():
        try:
            found[name] = probe()
        except Exception as error:  # a probe looks into foreign libraries: whatever it meets is evidence too
            found[name] = {"error": f"{type(error).__name__}: {error}"}
    found["seconds"] = round(time.perf_counter() - start, 4)
    return found
