"""Read from outside what a process and all that it has started have used so far."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """Since a process was started, of all its threads; CPU times are whole ticks of the kernel's clock (10 ms)."""

    user_s: float = 0.0
    system_s: float = 0.0
    minor_faults: int = 0


class Increase(NamedTuple):
    """``usage`` of so many ``processes`` between two looks, which are ``seconds`` apart."""

    seconds: float
    processes: int
    usage: Usage


class Look(NamedTuple):
    """``at_s`` is of ``time.perf_counter``; ``processes`` by pid."""

    at_s: float
    processes: dict[int, Usage]


def look(root: int) -> Look:
    """Look at ``root`` and all that it and its children have started and that still run.

    It reads a file of each process.
    """
    at_s, ticks = time.perf_counter(), os.sysconf("SC_CLK_TCK")
    parents, usage = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()  # proc(5), from the third field on
            if fields[0] == "Z":
                continue  # it has ended, and nobody has waited for it
            parents[int(entry.name)] = int(fields[1])
            usage[int(entry.name)] = Usage(int(fields[11]) / ticks, int(fields[12]) / ticks, int(fields[7]))
        except (OSError, IndexError):
            continue  # it has just ended
    tree, more = set(), {root}
    while more:
        tree |= more
        more = {pid for pid, parent in parents.items() if parent in more}
    return Look(at_s, {pid: used for pid, used in usage.items() if pid in tree})


def parent(pid: int) -> int | None:
    """Return the number of the process that has started it; None where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


def increase(before: Look, after: Look, without: Collection[int]) -> Increase:
    """Return what the processes that run at the second look, ``without`` some, have used since the first."""
    others = {
        pid: (before.processes.get(pid, Usage()), now) for pid, now in after.processes.items() if pid not in without
    }
    usage = Usage(
        sum(now.user_s - earlier.user_s for earlier, now in others.values()),
        sum(now.system_s - earlier.system_s for earlier, now in others.values()),
        sum(now.minor_faults - earlier.minor_faults for earlier, now in others.values()),
    )
    return Increase(after.at_s - before.at_s, len(others), usage)
