"""CPU, memory and process limits and throttling of the control group that this process is in (versions 1 and 2).

Source of the file formats: the Linux kernel's Documentation/admin-guide/cgroup-v2.rst and
Documentation/scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envkit.worker.readings import text_of


def _own_folders(root: Path, controller: str, v1_names: tuple[str, ...]) -> Iterator[Path]:
    """This process's cgroup folder and its parents, the innermost first.

    A limit on any level holds, so all of them count. Inside a container the path in /proc/self/cgroup may be the
    host's; then only the mount's own top, which is the container's group, exists.
    """
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif controller in controllers.split(","):
            mounts = [root / "sys/fs/cgroup" / name for name in v1_names]
        else:
            continue
        for mount in mounts:
            folder = mount / path.lstrip("/")
            while folder != mount:
                yield folder
                folder = folder.parent
            yield mount


def cpu_quota(root: Path = Path("/")) -> float | None:
    """The least CPU quota in force, in CPUs (1.5 is one and a half), or None where there is none.

    Version 2 has it in ``cpu.max`` ("quota period" or "max period"), version 1 in ``cpu.cfs_quota_us`` (-1 for none)
    and ``cpu.cfs_period_us``, all in microseconds.
    """
    quotas = []
    for folder in _own_folders(root, "cpu", ("cpu", "cpu,cpuacct")):
        v2 = text_of(folder / "cpu.max").split()
        if v2 and v2[0] != "max":
            quotas.append(int(v2[0]) / int(v2[1]))
        v1, period = (text_of(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        if v1 and period and int(v1) > 0:
            quotas.append(int(v1) / int(period))
    return min(quotas, default=None)


def memory_limit(root: Path = Path("/")) -> int | None:
    """The least memory limit in force, in bytes, or None where there is none.

    Version 2 has it in ``memory.max`` ("max" for none), version 1 in ``memory.limit_in_bytes`` (a number near 2**63).
    """
    limits = []
    for folder in _own_folders(root, "memory", ("memory",)):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = text_of(folder / name).strip()
            if text not in ("", "max") and int(text) < 2**60:
                limits.append(int(text))
    return min(limits, default=None)


def pids_limit(root: Path = Path("/")) -> tuple[int, int] | None:
    """How many processes and threads the group may have, and has (``pids.max``, ``pids.current``), or None.

    Of several groups, one in the other, it is the one with the least room.
    """
    found = []
    for folder in _own_folders(root, "pids", ("pids",)):
        most, current = (text_of(folder / name).strip() for name in ("pids.max", "pids.current"))
        if current and most not in ("", "max"):
            found.append((int(most), int(current)))
    return min(found, key=lambda one: one[0] - one[1], default=None)


def is_seen(root: Path = Path("/")) -> bool:
    """Whether any of this process's groups is visible: an image may have a /sys of its own, with none in it."""
    return any((folder / "cgroup.procs").exists() for folder in _own_folders(root, "cpu", ("cpu", "cpu,cpuacct")))


def throttled_seconds(root: Path = Path("/")) -> float | None:
    """How long this process's group, and those around it, have been held back by quotas; None: nothing tells.

    In seconds, summed over the CPUs that were held back: the kernel adds up those of each. Version 2 counts
    ``throttled_usec`` and version 1 ``throttled_time`` (nanoseconds) in ``cpu.stat``. They are added up over the groups
    too, as what is of interest is how much it grows, and of one that stands still the most must not hide another.
    """
    found = []
    for folder in _own_folders(root, "cpu", ("cpu", "cpu,cpuacct")):
        fields = dict(line.split()[:2] for line in text_of(folder / "cpu.stat").splitlines() if line)
        if "throttled_usec" in fields:
            found.append(int(fields["throttled_usec"]) / 1e6)
        elif "throttled_time" in fields:
            found.append(int(fields["throttled_time"]) / 1e9)
    return sum(found) if found else None
