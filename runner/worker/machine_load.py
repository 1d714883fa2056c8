"""What a machine is busy with besides us, from the kernel's counters over a span of time."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Counters:
    """Totals since boot of the whole machine: CPU time and stolen time in seconds, swapping in bytes."""

    time_s: float
    busy_s: float
    steal_s: float
    swapped_bytes: int


@dataclass(frozen=True)
class Load:
    """``busy_cpus`` and ``steal_cpus`` are averages, in CPUs; swapping is in bytes per second."""

    seconds: float
    busy_cpus: float
    steal_cpus: float
    swapped_bytes_per_s: float


def read(root: Path = Path("/")) -> Counters:
    """The counters now. Source of the formats: proc(5), /proc/stat and /proc/vmstat."""
    fields = [int(field) for field in (root / "proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    swapped = sum(
        int(line.split()[1])
        for line in (root / "proc/vmstat").read_text().splitlines()
        if line.startswith(("pswpin ", "pswpout "))
    )
    busy = user + nice + system + irq + softirq
    return Counters(time.monotonic(), busy / TICKS_PER_S, steal / TICKS_PER_S, swapped * PAGE_BYTES)


def between(before: Counters, after: Counters) -> Load:
    seconds = max(after.time_s - before.time_s, 1 / TICKS_PER_S)
    return Load(
        seconds,
        (after.busy_s - before.busy_s) / seconds,
        (after.steal_s - before.steal_s) / seconds,
        (after.swapped_bytes - before.swapped_bytes) / seconds,
    )


def watch(seconds: float) -> Load:
    """What the machine does while we wait for ``seconds``."""
    before = read()
    time.sleep(seconds)
    return between(before, read())
