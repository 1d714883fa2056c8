"""Observe a worker's own environment. A new probe is a module here with ``probe()`` and a line in ``PROBES``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from envkit.worker.evidence import (
    compiler,
    cpu_use,
    gpu,
    limits,
    malloc,
    math_libraries,
    memory,
    nccl,
    openmp,
    torch_build,
    variables,
)

PROBES: dict[str, Callable[[], Mapping[str, object]]] = {
    "openmp": openmp.probe,
    "malloc": malloc.probe,
    "memory": memory.probe,
    "threads": cpu_use.threads,
    "cpu_use": cpu_use.probe,
    "limits": limits.probe,
    "blas": math_libraries.blas,
    "onednn": math_libraries.onednn,
    "mkl": math_libraries.mkl,
    "torch": torch_build.probe,
    "compiler": compiler.probe,
    "gpu": gpu.probe,
    "nccl": nccl.probe,
    "variables": variables.probe,
}
# Takes a few milliseconds, while a program goes on.
SHORT_LOOK = {"cpu_use": PROBES["cpu_use"]}


def collect(probes: Mapping[str, Callable[[], Mapping[str, object]]] = PROBES) -> dict[str, object]:
    """Return every probe's findings by its name, and how long collecting took (seconds).

    A probe that fails has its error there, and the sample stays: what a profile expects of it then counts as not seen.
    """
    start = time.perf_counter()
    evidence: dict[str, object] = {}
    for name, probe in probes.items():
        try:
            evidence[name] = probe()
        except Exception as error:  # a probe looks into foreign libraries: whatever it meets is evidence too
            evidence[name] = {"error": f"{type(error).__name__}: {error}"}
    evidence["seconds"] = round(time.perf_counter() - start, 4)
    return evidence
