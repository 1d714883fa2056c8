"""How fast the CPUs run: their frequency, and how often they were slowed down because they got too hot."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from envkit.worker.readings import text_of


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
