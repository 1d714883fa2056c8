"""What the process is held to: CPU quota and throttling, memory, processes, and system calls that are filtered."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from typing import Any

from runner.worker.cgroup import cpu_quota, memory_limit, throttled_seconds


def probe() -> dict[str, Any]:
    """Sizes in bytes, times in seconds; None where there is no limit, or nothing that tells."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    shm = Path("/dev/shm")
    return {
        "affinity_cpus": len(os.sched_getaffinity(0)),
        "cpu_quota": cpu_quota(),
        "throttled_s": throttled_seconds(),
        "memory_bytes": memory_limit(),
        "processes": None if processes == resource.RLIM_INFINITY else processes,
        "shm_bytes": shutil.disk_usage(shm).total if shm.is_dir() else None,
        "seccomp": {"0": "off", "1": "strict", "2": "filter"}.get(status.get("Seccomp", "").strip()),
    }
