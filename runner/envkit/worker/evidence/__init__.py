"""What a worker sees of its own environment. A new probe is a module here with ``probe()`` and a line in ``PROBES``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from envkit.worker.evidence import (
    cpu_use,
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
    "cpu_use": cpu_use.probe,
    "limits": limits.probe,
    "blas": math_libraries.blas,
    "onednn": math_libraries.onednn,
    "mkl": math_libraries.mkl,
    "torch": torch_build.probe,
    "gpu": gpu.probe,
    "nccl": nccl.probe,
    "variables": variables.probe,
}
# What shows while a program goes on, in a few milliseconds.
SHORT_LOOK = {"cpu_use": PROBES["cpu_use"]}


def collect(probes: Mapping[str, Callable[[], dict[str, Any]]] = PROBES) -> dict[str, Any]:
    """Every probe's findings by its name, and how long collecting took (seconds).

    A probe that fails says so in its place and does not take the sample with it: what a profile expects of it then
    counts as not seen.
    """
    start = time.perf_counter()
    found: dict[str, Any] = {}
    for name, probe in probes.items():
        try:
            found[name] = probe()
        except Exception as error:  # a probe looks into foreign libraries: whatever it meets is evidence too
            found[name] = {"error": f"{type(error).__name__}: {error}"}
    found["seconds"] = round(time.perf_counter() - start, 4)
    return found
