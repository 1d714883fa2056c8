"""CPU, memory and process limits and throttling of the control group that this process is in (versions 1 and 2).

Source of the file formats: the Linux kernel's Documentation/admin-guide/cgroup-v2.rst and
Documentation/scheduler/sched-bwc.rst.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envkit.worker.performance_variables import keeps_freed_memory
from envkit.worker.readings import text_of

if TYPE_CHECKING:
    from envkit.worker.messages import MemoryRanOut

# A group whose use came so close to its limit, as a share of it, reached it: the kernel counts in pages and batches.
REACHED = 0.99


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
    return min((group.limit for group in _memory_groups(root) if group.limit is not None), default=None)


def held_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that the group with the least memory limit holds and can't drop, or None without a limit.

    These are anonymous and shared memory of all its processes; page cache is dropped before a limit kills. Version 1
    names them ``total_rss`` and ``total_shmem`` in ``memory.stat``, version 2 ``anon`` and ``shmem``.
    """
    limited = [group for group in _memory_groups(root) if group.limit is not None]
    if not limited:
        return None
    folder = min(limited, key=lambda group: group.limit or 0).folder
    fields = dict(line.split()[:2] for line in text_of(folder / "memory.stat").splitlines() if line)
    names = ("total_rss", "total_shmem") if "total_rss" in fields else ("anon", "shmem")
    return sum(int(fields.get(name, 0)) for name in names)


class MemoryGroup(NamedTuple):
    """A group's memory, in bytes; ``full`` counts how often it was at its limit. None of what is not told."""

    folder: Path
    name: str
    limit: int | None
    peak: int | None
    full: int
    kills: int | None  # of its processes, by the kernel's out-of-memory killer, whatever ran out


class MemoryCounters(NamedTuple):
    """The groups that this process is in, the innermost first, and what the whole machine has counted."""

    groups: tuple[MemoryGroup, ...]
    kills_on_machine: int | None


def memory_counters(root: Path = Path("/")) -> MemoryCounters:
    """Return what the kernel has counted so far; two of them tell what happened between (``ran_out``)."""
    vmstat = dict(line.split()[:2] for line in text_of(root / "proc/vmstat").splitlines() if line)
    return MemoryCounters(tuple(_memory_groups(root)), int(vmstat["oom_kill"]) if "oom_kill" in vmstat else None)


def _memory_groups(root: Path) -> Iterator[MemoryGroup]:
    """Return the groups with files of the memory controller.

    ``memory.events.local`` counts a limit that was reached in the group that has it, and ``memory.events`` in all
    groups around it. Version 1 counts in ``memory.failcnt`` each time that it had to take page cache back, too.
    """
    mounts = [root / "sys/fs/cgroup" / name for name in ("memory", "unified", "")]
    for folder in _own_folders(root, "memory", ("memory",)):
        v2, v1 = (_fields(folder / name) for name in ("memory.events", "memory.oom_control"))
        kills = v2.get("oom_kill", v1.get("oom_kill"))
        limit = _bytes(folder, "memory.max", "memory.limit_in_bytes")
        if kills is None and limit is None:
            continue
        full = (_fields(folder / "memory.events.local") or v2).get("oom", 0) + (_bytes(folder, "memory.failcnt") or 0)
        mount = next(candidate for candidate in mounts if candidate == folder or candidate in folder.parents)
        peak = _bytes(folder, "memory.peak", "memory.max_usage_in_bytes")
        yield MemoryGroup(folder, f"/{folder.relative_to(mount)}".replace("/.", "/"), limit, peak, full, kills)


def _fields(file: Path) -> dict[str, int]:
    return {line.split()[0]: int(line.split()[1]) for line in text_of(file).splitlines() if len(line.split()) == 2}


def _bytes(folder: Path, *names: str) -> int | None:
    """Return the number in the first of these files that has one; None for none, and for no limit."""
    texts = (text_of(folder / name).strip() for name in names)
    return next((int(text) for text in texts if text not in ("", "max") and int(text) < 2**60), None)


def ran_out(
    before: MemoryCounters, program: str, was_killed: bool, variables: Mapping[str, str], root: Path = Path("/")
) -> MemoryRanOut | None:
    """Return which memory ran out since ``before`` if the kernel killed ``program`` or its children for it, or None.

    ``variables`` are the program's. ``was_killed``: SIGKILL ended the program itself. A group counts all kills in it,
    whichever memory ran out. If no group is visible, the machine's count must do. It has the kills of other programs
    too, so it counts only for a program that was killed.
    """
    from envkit.worker.messages import MemoryRanOut  # which is seldom needed, and takes a while

    now = memory_counters(root)
    kills = _more(now.groups[0].kills, before.groups[0].kills) if now.groups and before.groups else None
    if kills is None:
        kills = min(1, _more(now.kills_on_machine, before.kills_on_machine) or 0) if was_killed else 0
    if kills <= 0:
        return None
    keeps = keeps_freed_memory(variables)
    message = MemoryRanOut(program, None if was_killed else kills, retaining=keeps)
    full = {group.folder: group.full for group in before.groups}
    for group in now.groups:
        came_near = group.limit is not None and (group.peak is None or group.peak >= REACHED * group.limit)
        if came_near and group.full > full.get(group.folder, 0):
            return message.replace(group=group.name, limit=group.limit, peak=group.peak)
    total = text_of(root / "proc/meminfo").split()[1:2]
    return message.replace(machine=1024 * int(total[0]) if total else None)


def _more(now: int | None, before: int | None) -> int | None:
    return None if now is None or before is None else now - before


def pids_limit(root: Path = Path("/")) -> tuple[int, int] | None:
    """How many processes and threads the group may have, and has (``pids.max``, ``pids.current``), or None.

    Of several groups, one in the other, it is the one with the least room.
    """
    limits = []
    for folder in _own_folders(root, "pids", ("pids",)):
        most, current = (text_of(folder / name).strip() for name in ("pids.max", "pids.current"))
        if current and most not in ("", "max"):
            limits.append((int(most), int(current)))
    return min(limits, key=lambda limit: limit[0] - limit[1], default=None)


def is_seen(root: Path = Path("/")) -> bool:
    """Return whether any of this process's groups is visible: an image may have a /sys of its own, with none in it."""
    return any((folder / "cgroup.procs").exists() for folder in _own_folders(root, "cpu", ("cpu", "cpu,cpuacct")))


def throttled_seconds(root: Path = Path("/")) -> float | None:
    """How long this process's group, and those around it, have been held back by quotas; None: nothing tells.

    In seconds, summed over the CPUs that were held back: the kernel adds up those of each. Version 2 counts
    ``throttled_usec`` and version 1 ``throttled_time`` (nanoseconds) in ``cpu.stat``. They are added up over the groups
    too, as what is of interest is how much it grows, and of one that stands still the most must not hide another.
    """
    seconds = []
    for folder in _own_folders(root, "cpu", ("cpu", "cpu,cpuacct")):
        fields = dict(line.split()[:2] for line in text_of(folder / "cpu.stat").splitlines() if line)
        if "throttled_usec" in fields:
            seconds.append(int(fields["throttled_usec"]) / 1e6)
        elif "throttled_time" in fields:
            seconds.append(int(fields["throttled_time"]) / 1e9)
    return sum(seconds) if seconds else None
