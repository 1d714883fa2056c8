"""The load of a machine over a span of time, and how fast its CPUs run, from the kernel's counters."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from envkit.worker.readings import text_of

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The fields of a CPU's line in /proc/stat, in their order; older kernels have fewer of them.
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class CpuTime:
    """How long one CPU was in use since boot, in seconds: by programs and the kernel's work for them, and stolen."""

    programs_s: float
    steal_s: float


@dataclass(frozen=True)
class Counters:
    """Totals since boot: times in seconds, swapping in bytes; None where the kernel does not tell."""

    time_s: float
    busy_s: float | None  # with the time that interrupts take, which ``cpus`` has not
    steal_s: float | None
    swapped_bytes: int | None
    pressure_s: float | None = None  # in which at least one task of the machine was ready to run and had no CPU
    cpus: dict[int, CpuTime] = field(default_factory=dict)


@dataclass(frozen=True)
class Load:
    """``busy_cpus`` and ``steal_cpus`` are averages, in CPUs; swapping is in bytes per second."""

    seconds: float
    busy_cpus: float
    steal_cpus: float
    swapped_bytes_per_s: float


def read(root: Path = Path("/")) -> Counters:
    """The counters now.

    Source of the formats: proc_stat(5), proc_vmstat(5) and the kernel's Documentation/accounting/psi.rst (pressure is
    in microseconds, and can't be read where it is not counted).
    """
    lines = {name: _seconds(fields) for name, _, fields in _lines(root / "proc/stat") if name.startswith("cpu")}
    total = lines.get("cpu")
    swapped = [int(count) for name, _, count in _lines(root / "proc/vmstat") if name in ("pswpin", "pswpout")]
    waited = [text.rpartition("total=")[2] for name, _, text in _lines(root / "proc/pressure/cpu") if name == "some"]
    return Counters(
        time_s=time.monotonic(),
        busy_s=sum(total[name] for name in ("user", "nice", "system", "irq", "softirq")) if total else None,
        steal_s=total["steal"] if total else None,
        swapped_bytes=sum(swapped) * PAGE_BYTES if swapped else None,
        pressure_s=int(waited[0]) / 1e6 if waited else None,
        cpus={
            int(name[3:]): CpuTime(seconds["user"] + seconds["nice"] + seconds["system"], seconds["steal"])
            for name, seconds in lines.items()
            if seconds and name[3:].isdigit()
        },
    )


def _lines(path: Path) -> list[tuple[str, str, str]]:
    """Each line's first word, a space and the rest; nothing where the file can't be read."""
    return [line.partition(" ") for line in text_of(path).splitlines()]


def _seconds(text: str) -> dict[str, float] | None:
    """The fields of a CPU's line in seconds, 0 for those that the kernel does not have; None if they are no numbers."""
    fields = text.split()[: len(FIELDS)]
    if not fields or not all(field.isdigit() for field in fields):
        return None
    seconds = {name: int(ticks) / TICKS_PER_S for name, ticks in zip(FIELDS, fields)}
    return {**dict.fromkeys(FIELDS, 0.0), **seconds}


def between(before: Counters, after: Counters) -> Load:
    """The averages between two readings; 0 for what the kernel does not tell."""
    seconds = max(after.time_s - before.time_s, 1 / TICKS_PER_S)
    return Load(
        seconds,
        _difference(before.busy_s, after.busy_s) / seconds,
        _difference(before.steal_s, after.steal_s) / seconds,
        _difference(before.swapped_bytes, after.swapped_bytes) / seconds,
    )


def _difference(before: float | None, after: float | None) -> float:
    return 0.0 if before is None or after is None else after - before


def watch(seconds: float) -> Load:
    """Return what the machine does while we wait for ``seconds``."""
    before = read()
    time.sleep(seconds)
    return between(before, read())


# --- how fast the CPUs run, and how often they were slowed down because they got too hot ---


def frequency_mhz(cpus: Collection[int], root: Path = Path("/")) -> float | None:
    """The mean of the CPUs' frequencies now, or None where the kernel does not tell, as in most virtual machines.

    It comes from cpufreq's ``scaling_cur_freq``, in kHz (kernel documentation, admin-guide/pm/cpufreq). The ``cpu MHz``
    of /proc/cpuinfo is not asked: where cpufreq is missing it mostly is the time stamp counter's, which never changes.
    """
    frequencies = _each(cpus, "cpufreq/scaling_cur_freq", root)
    return round(sum(frequencies) / len(frequencies) / 1000, 1) if frequencies else None


def throttle_events(cpus: Collection[int], root: Path = Path("/")) -> int | None:
    """How often the CPUs' cores have been throttled for their heat since boot, or None where the kernel does not tell.

    It is the sum of their ``core_throttle_count`` (kernel documentation, ABI/testing/sysfs-devices-system-cpu): of two
    hardware threads of one core both count.
    """
    counts = _each(cpus, "thermal_throttle/core_throttle_count", root)
    return sum(counts) if counts else None


def _each(cpus: Collection[int], name: str, root: Path) -> list[int]:
    """The number in a file of each CPU that has it."""
    texts = (text_of(root / f"sys/devices/system/cpu/cpu{cpu}" / name).strip() for cpu in cpus)
    return [int(text) for text in texts if text.isdigit()]  # some drivers write <unknown>
