"""Observe the process's limits: CPU quota and throttling, memory, processes, and system calls that are filtered."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import shutil
from pathlib import Path

from envkit.messages import Message
from envkit.worker.cgroup import cpu_quota, memory_limit, pids_limit, throttled_seconds
from envkit.worker.messages.evidence import GroupLimit, UserLimit
from envkit.worker.readings import text_of

GET_MEMPOLICY = 239  # the system call's number on x86-64


def probe() -> dict[str, object]:
    """Return the limits: sizes in bytes, times in seconds; None where there is no limit, or nothing that tells."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    free, limit = processes()
    return {
        "user_id": os.getuid(),
        "affinity_cpus": len(os.sched_getaffinity(0)),
        "cpu_quota": cpu_quota(),
        "throttled_s": throttled_seconds(),
        "memory_bytes": memory_limit(),
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "processes_free": free,
        "processes_limit": None if limit is None else limit.to_json(),
        "shm_bytes": shm_bytes(),
        "store_bypass": status.get("Speculation_Store_Bypass", "").strip() or None,
        "seccomp": {"0": "off", "1": "strict", "2": "filter"}.get(status.get("Seccomp", "").strip()),
        "numa_calls": _numa_calls(),
    }


def shm_bytes() -> int | None:
    """Return the size of shared memory, or None if there is no such folder."""
    shm = Path("/dev/shm")
    return shutil.disk_usage(shm).total if shm.is_dir() else None


def processes() -> tuple[int | None, Message | None]:
    """Return how many more processes or threads may be started, and the limit; None if there is no limit.

    It is the user's, which root does not have, or the group's, whichever leaves the least room.
    """
    limits: list[tuple[int, Message]] = []
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit != resource.RLIM_INFINITY and os.getuid() != 0:
        used = sum(_threads_if_mine(path) for path in Path("/proc").glob("[0-9]*/status"))
        limits.append((limit - used, UserLimit(limit, used)))
    group = pids_limit()
    if group is not None:
        limits.append((group[0] - group[1], GroupLimit(*group)))
    return min(limits, key=lambda free_and_limit: free_and_limit[0], default=(None, None))


def _threads_if_mine(status: Path) -> int:
    fields = dict(line.split(":", 1) for line in text_of(status).splitlines() if ":" in line)
    return int(fields["Threads"]) if fields and int(fields["Uid"].split()[0]) == os.getuid() else 0


def _numa_calls() -> bool | None:
    """Return whether get_mempolicy(2) is allowed; None on a kernel or architecture where that can't be said."""
    if platform.machine() != "x86_64":
        return None
    mode = ctypes.c_int()
    if ctypes.CDLL(None, use_errno=True).syscall(GET_MEMPOLICY, ctypes.byref(mode), None, 0, None, 0) == 0:
        return True
    return False if ctypes.get_errno() == errno.EPERM else None
