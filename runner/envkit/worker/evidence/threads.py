"""Where each thread of the process may run."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

from envkit.worker.evidence import openmp
from envkit.worker.host import expand_cpu_list


def probe() -> dict[str, Any]:
    """``masks`` counts threads by CPU list; ``pinned_cpus`` counts the CPUs that some thread is bound to alone.
    ``started_on`` are those that the process began with, before a runtime bound any thread.

    A process that began with one CPU, as a rank of several may, has bound no thread.
    """
    masks: Counter[str] = Counter()
    for status in Path("/proc/self/task").glob("*/status"):
        with contextlib.suppress(OSError):  # the thread has just ended
            masks[_mask(status.read_text())] += 1
    alone = {mask for mask in masks if len(expand_cpu_list(mask)) == 1 and len(openmp.STARTED_ON) > 1}
    return {
        "count": sum(masks.values()),
        "masks": dict(sorted(masks.items())),
        "pinned_cpus": len(alone),
        "started_on": ",".join(map(str, sorted(openmp.STARTED_ON))),
    }


def _mask(status: str) -> str:
    return next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
