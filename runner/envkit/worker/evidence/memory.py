"""Observe the memory that the process really got: huge pages, and the NUMA nodes of its pages.

Source of the file formats: the Linux kernel's Documentation/filesystems/proc.rst and numa_maps(5) in proc(5).
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import Counter
from pathlib import Path

from envkit.worker.host import expand_cpu_list
from envkit.worker.readings import text_of as _text

THP = Path("/sys/kernel/mm/transparent_hugepage")
MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ", re.MULTILINE)
SIZE = re.compile(r"^(\w+): +(\d+) kB$", re.MULTILINE)
# Larger than glibc's limit for blocks of their own ever grows by itself (32 MiB), so that the mapping is a new one.
BLOCK_BYTES = 64 << 20
# More than PyTorch alone takes, and less than a training.
LITTLE_BYTES = 256 << 20
NODE_PAGES = re.compile(r"\bN(\d+)=(\d+)")


def probe() -> dict[str, object]:
    """Return sizes in bytes. ``huge_pages`` says how much of the anonymous memory is in transparent huge pages.

    It is ``none``, ``some`` or ``most`` (half or more); numpy asks for some itself where the mode is madvise. What
    counts is the memory that a training works with: in a process with little of its own, or whose pages were split
    because it started others as copies of itself (DataLoader's workers), a new large block stands for it.
    """
    anonymous, huge = (_rollup(field) for field in ("Anonymous", "AnonHugePages"))
    most = 0 < huge >= anonymous / 2
    if not most and (huge > 0 or anonymous < LITTLE_BYTES):
        # PyTorch asks for huge pages for its large tensors only, of which what starts ranks has none
        most = _new_block_is_huge(unasked=huge > 0)
    policies, pages = parse_numa_maps(_text(Path("/proc/self/numa_maps")))
    return {
        "anonymous_bytes": anonymous,
        "huge_bytes": huge,
        "huge_pages": "most" if most else "some" if huge else "none",
        "thp_refused": "\nTHP_enabled:\t0\n"
        in _text(Path("/proc/self/status")),  # prctl(PR_SET_THP_DISABLE), inherited
        "thp_enabled": _selected(_text(THP / "enabled")),
        "thp_defrag": _selected(_text(THP / "defrag")),
        "numa_policy": policies.most_common(1)[0][0] if policies else None,
        "pages_per_node": dict(sorted(pages.items())),
        "remote_share": remote_share(pages, _nodes_of(_cpus_of_all_threads())),
    }


def _new_block_is_huge(unasked: bool) -> bool:
    """Return whether half or more of a new block is in huge pages after a write; False if torch is not loaded.

    Unless ``unasked``, the kernel must have been asked for them there (madvise): the mode of the system does not count.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    block = torch.empty(BLOCK_BYTES, dtype=torch.uint8, device="cpu").fill_(1)  # whatever the program's own default
    smaps, middle = _text(Path("/proc/self/smaps")), block.data_ptr() + BLOCK_BYTES // 2
    return (unasked or advised(smaps, middle)) and huge_share(smaps, middle) >= 0.5


def huge_share(smaps: str, address: int) -> float:
    """Return the share of huge pages in the used memory of the mapping at ``address``, or 0 without a mapping."""
    sizes = dict(SIZE.findall(mapping_at(smaps, address)))
    return int(sizes.get("AnonHugePages", 0)) / max(int(sizes.get("Anonymous", 0)), 1)


def advised(smaps: str, address: int) -> bool:
    """Return whether the mapping at ``address`` has the flag ``hg`` (kernel's filesystems/proc, VmFlags)."""
    flags = re.search(r"^VmFlags: (.*)$", mapping_at(smaps, address), re.MULTILINE)
    return flags is not None and "hg" in flags[1].split()


def mapping_at(smaps: str, address: int) -> str:
    """Return what /proc/PID/smaps says of the mapping at ``address``, or nothing without such a mapping."""
    for match in MAPPING.finditer(smaps):
        if int(match[1], 16) <= address < int(match[2], 16):
            following = MAPPING.search(smaps, match.end())
            return smaps[match.end() : following.start() if following else None]
    return ""


def parse_numa_maps(text: str) -> tuple[Counter[str], Counter[str]]:
    """The policies of the mappings with anonymous pages, and the pages on each node (``N0=512 N1=3``)."""
    policies: Counter[str] = Counter()
    pages: Counter[str] = Counter()
    for line in text.splitlines():
        for node, count in NODE_PAGES.findall(line):
            pages[f"N{node}"] += int(count)
        if " anon=" in line:
            policies[line.split()[1].partition(":")[0]] += 1
    return policies, pages


def remote_share(pages: Counter[str], near: set[str]) -> float | None:
    """The share of the pages that is on other nodes than ``near``; None where no page is known."""
    total = sum(pages.values())
    return round(sum(count for node, count in pages.items() if node not in near) / total, 3) if total else None


def _cpus_of_all_threads() -> set[int]:
    """The CPUs that any thread may run on: the first one alone may be bound to a single one by now."""
    cpus: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            cpus |= os.sched_getaffinity(int(task.name))
    return cpus


def _nodes_of(cpus: set[int]) -> set[str]:
    """The NUMA nodes, as in N0, that have one of these CPUs."""
    lists = Path("/sys/devices/system/node").glob("node[0-9]*/cpulist")
    return {f"N{path.parent.name[len('node') :]}" for path in lists if expand_cpu_list(_text(path)) & cpus}


def _rollup(field: str) -> int:
    match = re.search(rf"^{field}:\s+(\d+) kB", _text(Path("/proc/self/smaps_rollup")), re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


def _selected(text: str) -> str | None:
    """The word in brackets: ``always [madvise] never`` is madvise."""
    match = re.search(r"\[([\w+]+)\]", text)  # such as defer+madvise
    return match.group(1) if match else None
