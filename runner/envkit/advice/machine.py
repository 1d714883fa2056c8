"""The machine's part of a profile's gain: who made its processor, which generation it is, and what a page fault costs.

References:
  Linux, arch/x86/kernel/cpu/amd.c, bsp_init_amd (which models of a family are Zen 1 to 6).
  Linux, arch/x86/include/asm/intel-family.h (models of Intel's family 6, with the names of their cores).
"""

from __future__ import annotations

import mmap
import re
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

from envkit.profiles.inspection import Inspection

AMD, INTEL = "AuthenticAMD", "GenuineIntel"
# By vendor and family: the first and last model of each range, and the microarchitecture.
GENERATIONS = {
    (AMD, 0x17): (
        (0x00, 0x2F, "Zen"), (0x30, 0x4F, "Zen 2"), (0x50, 0x5F, "Zen"), (0x60, 0x7F, "Zen 2"), (0x90, 0x91, "Zen 2"),
        (0xA0, 0xAF, "Zen 2"),
    ),
    (AMD, 0x19): ((0x00, 0x0F, "Zen 3"), (0x10, 0x1F, "Zen 4"), (0x20, 0x5F, "Zen 3"), (0x60, 0xAF, "Zen 4")),
    (AMD, 0x1A): (
        (0x00, 0x2F, "Zen 5"), (0x40, 0x4F, "Zen 5"), (0x50, 0x5F, "Zen 6"), (0x60, 0x7F, "Zen 5"),
        (0x80, 0xAF, "Zen 6"), (0xC0, 0xCF, "Zen 6"),
    ),
    (INTEL, 6): (
        (0x55, 0x55, "Skylake"), (0x6A, 0x6A, "Sunny Cove"), (0x6C, 0x6C, "Sunny Cove"), (0x8F, 0x8F, "Golden Cove"),
        (0xAD, 0xAE, "Redwood Cove"), (0xCF, 0xCF, "Raptor Cove"),
    ),
}  # fmt: skip
VENDORS = {AMD: "AMD", INTEL: "Intel"}
# As the kernel calls what tells processors apart, on x86 and on ARM; ARM's numbers are hexadecimal.
FAMILY = re.compile(r"(?:cpu family|CPU implementer) (0x[0-9a-f]+|\d+)")
MODEL = re.compile(r"(?:model|CPU part) (0x[0-9a-f]+|\d+)")
# Memory whose pages are touched to time faults, in bytes, and for how long that is repeated, in seconds.
TOUCHED, TIMED_S = 32 << 20, 0.5


@dataclass(frozen=True)
class Machine:
    """A kind of machine: what its processor is, and how much of it can be used."""

    vendor: str  # as CPUID calls it; empty where the kernel names none
    family: int
    model: int
    name: str  # as the kernel calls it
    usable_cpus: int
    physical_cores: int

    @property
    def microarchitecture(self) -> str | None:
        """The name of the core's generation; None where it is not known."""
        ranges = GENERATIONS.get((self.vendor, self.family), ())
        return next((name for first, last, name in ranges if first <= self.model <= last), None)

    @property
    def title(self) -> str:
        """The machine in a few words, such as ``AMD Zen 5, 2 CPUs``."""
        kind = self.microarchitecture or self.name
        vendor = VENDORS.get(self.vendor, "")
        named = kind if vendor in kind else f"{vendor} {kind}".strip()
        cores = "" if self.physical_cores == self.usable_cpus else f" on {self.physical_cores} cores"
        return f"{named}, {self.usable_cpus} CPUs{cores}"


def machine_of(inspection: Inspection) -> Machine:
    """Return the machine that an inspection was made on."""
    facts, fingerprint = inspection["facts"], inspection["fingerprint"]
    numbers = fingerprint["cpu_numbers"] or ""
    return Machine(
        vendor=facts.get("cpu_vendor") or "",
        family=_number(FAMILY, numbers),
        model=_number(MODEL, numbers),
        name=fingerprint["cpu_model"],
        usable_cpus=facts["usable_cpus"],
        physical_cores=facts["physical_cores"],
    )


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1], 0) if match else 0


def page_fault_s() -> float:
    """Return the cost of a page fault on this machine in seconds: a first write to a small page, less a second one.

    The kernel finds a page and fills it with zeros. This takes half a second and 32 MiB.
    """
    pages = TOUCHED // mmap.PAGESIZE
    ones = b"\1" * pages
    costs: list[float] = []
    end = time.perf_counter() + TIMED_S
    while not costs or time.perf_counter() < end:
        with mmap.mmap(-1, TOUCHED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            _use_small_pages(memory)
            first, second = (_touch(memory, ones) for _ in range(2))
        costs.append((first - second) / pages)
    return statistics.median(costs)


def _use_small_pages(memory: mmap.mmap) -> None:
    try:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    except (OSError, AttributeError):  # a kernel without huge pages has small ones alone
        return


def _touch(memory: mmap.mmap, ones: bytes) -> float:
    begin = time.perf_counter()
    memory[:: mmap.PAGESIZE] = ones
    return time.perf_counter() - begin


def features(machine: Machine, fault_s: float | None) -> Mapping[str, float | None]:
    """Return what a gain may depend on beside the training's symptoms, by name. ``fault_s`` is None if not measured."""
    return {
        "intel": float(machine.vendor == INTEL),
        "shared_cores": 1 - machine.physical_cores / machine.usable_cpus,
        "fault_us": None if fault_s is None else 1e6 * fault_s,
    }
