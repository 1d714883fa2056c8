"""The machine, as seen from inside the image: the facts that profiles refer to, and its fingerprint."""

from __future__ import annotations

import ctypes
import math
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from envkit.worker.cgroup import cpu_quota
from envkit.worker.messages.captions import ASLR_OFF_HERE, UNKNOWN_HYPERVISOR
from envkit.worker.readings import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

# The instruction sets that decide what oneDNN can do, as /proc/cpuinfo calls them.
ISA = ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16")
# What tells processors apart where a hypervisor hides their names, and on ARM, where the kernel knows none.
CPU_NUMBERS = ("cpu family", "model", "stepping", "CPU implementer", "CPU variant", "CPU part")

# How the kernel places stack, libraries and heap (kernel documentation, admin-guide/sysctl/kernel, randomize_va_space):
# at 1 the heap alone stays where it is.
ASLR = {"0": "off", "1": "partial", "2": "full"}
# No kernel numbers its CPUs, or its nodes, as high as that.
MOST_CPUS = 2**16
ADDR_NO_RANDOMIZE, ASK_ONLY = 0x0040000, 0xFFFFFFFF  # linux/personality.h and personality(2)


def _read(path: Path) -> str | None:
    return text_of(path).strip() or None


def expand_cpu_list(text: str) -> set[int]:
    """The kernel's list format: ``0-3,8`` is {0, 1, 2, 3, 8}. Raise ValueError for others, and for millions of CPUs."""
    cpus: set[int] = set()
    for part in text.split(","):
        if part.strip():
            first, _, last = part.partition("-")
            if int(last or first) >= MOST_CPUS:
                raise ValueError(part)
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def cpu_list(cpus: Iterable[int]) -> str:
    """Return CPUs in the kernel's list format, of which ``expand_cpu_list`` makes the set again."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        first = ranges.pop()[0] if ranges and ranges[-1][1] == cpu - 1 else cpu
        ranges.append((first, cpu))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def usable_cpus(root: Path = Path("/")) -> set[int]:
    """Return the CPUs of the affinity mask that are online, or the mask if the kernel's list has none of them."""
    mask = os.sched_getaffinity(0)
    return mask & _online(root) or mask


def _online(root: Path) -> set[int]:
    listed = _read(root / "sys/devices/system/cpu/online")
    return expand_cpu_list(listed) if listed else set(range(os.cpu_count() or 1))


class CpuFacts(TypedDict, total=False):
    """Counts of the machine that profiles refer to (``cpu_facts``)."""

    usable_cpus: int
    physical_cores: int
    numa_nodes: int
    memory_nodes: int  # where there are more of them
    affinity_cpus: int
    online_cpus: int
    cpu_quota: float | None  # in CPUs; None without one
    smt: bool
    cpu_vendor: str | None


def cpu_facts(root: Path = Path("/")) -> CpuFacts:
    """Counts that profiles may refer to, what they were worked out from, and the kind of processor.

    ``usable_cpus`` is the least of the affinity mask, the CPU quota (rounded down, at least 1, because a spinning
    thread too many is throttled) and the online CPUs. ``physical_cores`` counts distinct cores among the CPUs of the
    mask and is never more than ``usable_cpus``. ``numa_nodes`` are those that have CPUs of the mask; ``memory_nodes``
    counts all of the machine where there are others, as a GPU's or an expander's memory can be one. ``cpu_vendor`` is
    what CPUID calls the maker, as GenuineIntel; None on processors other than x86, whose kernels name none.
    """
    mask, cpus = os.sched_getaffinity(0), usable_cpus(root)
    quota = cpu_quota(root)
    usable = len(cpus) if quota is None else max(1, min(len(cpus), math.floor(quota)))
    cores = {core_of(cpu, root) for cpu in cpus}
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    with_cpus = sum(not cpus.isdisjoint(expand_cpu_list(text_of(node / "cpulist"))) for node in nodes)
    facts: CpuFacts = {
        "usable_cpus": usable,
        "physical_cores": min(len(cores), usable),
        "numa_nodes": max(1, with_cpus),
        "affinity_cpus": len(mask),
        "online_cpus": len(_online(root)),
        "cpu_quota": quota,
        "smt": _read(root / "sys/devices/system/cpu/smt/active") == "1",
        "cpu_vendor": _cpuinfo(root).get("vendor_id"),
    }
    if len(nodes) > max(1, with_cpus):
        facts["memory_nodes"] = len(nodes)
    return facts


def core_of(cpu: int, root: Path) -> tuple[str, str]:
    """The package and the core that a CPU belongs to, as the kernel tells them."""
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    # cores are numbered anew in each package, and on some processors in each cluster of one
    core = text_of(topology / "thread_siblings_list") or text_of(topology / "core_id") or f"cpu{cpu}"
    return text_of(topology / "physical_package_id"), core


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor's block of /proc/cpuinfo."""
    lines = text_of(root / "proc/cpuinfo").partition("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _caches(root: Path) -> dict[str, str]:
    """Size of each of CPU 0's caches, for example {"L1 Data": "48K", "L2 Unified": "1024K"}."""
    caches = {}
    for index in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if level and kind and size:
            caches[f"L{level} {kind}"] = size
    return caches


def _selected(text: str | None) -> str | None:
    """The word in brackets: ``always [madvise] never`` is madvise."""
    if text is None or "[" not in text:
        return text
    return text.split("[")[1].split("]")[0]


def fingerprint(root: Path = Path("/")) -> dict[str, object]:
    """Describe the machine, for when a result can't be repeated elsewhere.

    A value that can't be read is None; memory is in bytes.
    """
    cpu = _cpuinfo(root)
    flags = cpu.get("flags", "").split()
    memory = re.search(r"^MemTotal:\s+(\d+)", text_of(root / "proc/meminfo"), re.MULTILINE)
    dmi = root / "sys/class/dmi/id"
    thp = root / "sys/kernel/mm/transparent_hugepage"
    os_release = dict(line.split("=", 1) for line in text_of(root / "etc/os-release").splitlines() if "=" in line)
    return {
        "cpu_model": cpu.get("model name") or platform.processor() or platform.machine(),
        "cpu_numbers": ", ".join(f"{name} {cpu[name]}" for name in CPU_NUMBERS if name in cpu) or None,
        "architecture": platform.machine(),
        "microcode": cpu.get("microcode"),
        "caches": _caches(root),
        "memory_bytes": int(memory[1]) * 1024 if memory else None,
        "kernel": platform.release(),
        "distribution": os_release.get("PRETTY_NAME", "").strip('"') or None,
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "thp_enabled": _selected(_read(thp / "enabled")),
        "thp_defrag": _selected(_read(thp / "defrag")),
        "governor": _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "frequency_driver": _read(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
        "hypervisor": _hypervisor(flags, _read(dmi / "sys_vendor"), _read(dmi / "product_name")),
        "isa": [name for name in ISA if name in flags],
        "aslr": _aslr(_read(root / "proc/sys/kernel/randomize_va_space")),
    }


def _aslr(kernel: str | None) -> str | None:
    """Return how addresses are randomised in new processes: full, partial, off, or off for those of this process.

    A process is exempted by its personality, which ``setarch -R`` and debuggers set and which its children inherit.
    """
    mode = None if kernel is None else ASLR.get(kernel, kernel)
    persona = ctypes.CDLL(None).personality(ctypes.c_ulong(ASK_ONLY))
    exempt = persona != -1 and persona & ADDR_NO_RANDOMIZE
    return ASLR_OFF_HERE if exempt and mode != "off" else mode


def _hypervisor(flags: list[str], vendor: str | None, product: str | None) -> str | None:
    """Return what the firmware calls the virtual machine, None on bare metal (CPUID's hypervisor bit is clear).

    It is None, too, on processors other than x86, which have no such bit.
    """
    if "hypervisor" not in flags:
        return None
    return " ".join(filter(None, (vendor, product))) or UNKNOWN_HYPERVISOR
