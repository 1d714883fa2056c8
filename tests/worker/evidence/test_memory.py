"""Which nodes memory is on and how much of it is in huge pages, from what the kernel prints."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from envkit.worker.evidence import memory

NUMA_MAPS = """\
55c924570000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
55c92457b000 default file=/usr/bin/head anon=1 dirty=1 active=0 N0=1 kernelpagesize_kB=4
7f3a00000000 interleave:0-1 anon=512 dirty=512 N0=256 N1=256 kernelpagesize_kB=4
7f3b00000000 bind:1 anon=3 dirty=3 N1=3 kernelpagesize_kB=4
7f3c00000000 interleave:0-1 anon=4 dirty=4 N0=1 N10=3 kernelpagesize_kB=4
7ffd0e7e6000 default stack
"""


def test_pages_and_policies_of_numa_maps():
    policies, pages = memory.parse_numa_maps(NUMA_MAPS)
    assert policies == {"interleave": 2, "default": 1, "bind": 1}  # file mappings have no policy that matters
    assert pages == {"N0": 2 + 1 + 256 + 1, "N1": 256 + 3, "N10": 3}


@pytest.mark.parametrize("text", ["", "garbage\n", "7ffd0e7e6000 default stack\n"])
def test_numa_maps_that_tell_nothing(text):
    assert memory.parse_numa_maps(text) == (Counter(), Counter())


@pytest.mark.parametrize(
    ("pages", "near", "share"),
    [
        ({"N0": 90, "N1": 10}, {"N0"}, 0.1),
        ({"N0": 90, "N1": 10}, {"N1"}, 0.9),
        ({"N0": 90, "N1": 10}, {"N0", "N1"}, 0.0),
        ({"N0": 5}, set(), 1.0),
        ({"N1": 1, "N10": 2}, {"N1"}, 0.667),
        ({}, {"N0"}, None),
    ],
)
def test_remote_share(pages, near, share):
    assert memory.remote_share(Counter(pages), near) == share


@pytest.mark.parametrize(
    ("rollup", "expected"),
    [
        ("Anonymous:       1000 kB\nAnonHugePages:   500 kB\n", (1024000, 512000, "most")),
        ("Anonymous:       1000 kB\nAnonHugePages:   499 kB\n", (1024000, 510976, "some")),
        ("Anonymous:       1000 kB\nAnonHugePages:     0 kB\n", (1024000, 0, "none")),
        ("", (0, 0, "none")),
    ],
)
def test_how_much_is_in_huge_pages(monkeypatch, rollup, expected):
    texts = {
        "smaps_rollup": rollup,
        "enabled": "always madvise [never]",
        "defrag": "always defer [defer+madvise] madvise never",
    }
    monkeypatch.setattr(memory, "_text", lambda path: texts.get(path.name, ""))
    found = memory.probe()
    assert (found["anonymous_bytes"], found["huge_bytes"], found["huge_pages"]) == expected
    assert (found["thp_enabled"], found["thp_defrag"]) == ("never", "defer+madvise")
    assert (found["numa_policy"], found["remote_share"]) == (None, None)


@pytest.mark.parametrize(("status", "refused"), [("1", False), ("0", True), (None, False)])
def test_huge_pages_that_were_switched_off_for_the_process(monkeypatch, status, refused):
    lines = f"CoreDumping:\t0\nTHP_enabled:\t{status}\nThreads:\t1\n" if status else "Threads:\t1\n"
    monkeypatch.setattr(memory, "_text", lambda path: lines if path.name == "status" else "")
    assert memory.probe()["thp_refused"] is refused


def test_a_kernel_without_these_files(monkeypatch):
    monkeypatch.setattr(memory, "_text", lambda path: "")
    assert memory.probe()["thp_enabled"] is None


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="this kernel has no smaps_rollup")
def test_this_process():
    kept = bytearray(os.urandom(1) * 2**25)
    found = memory.probe()
    assert found["anonymous_bytes"] > len(kept)
    assert found["huge_bytes"] <= found["anonymous_bytes"]
    assert found["remote_share"] in (None, 0.0) or found["remote_share"] < 1


SMAPS = """7f0000000000-7f0004000000 rw-p 00000000 00:00 0
Size:              65536 kB
Anonymous:         60000 kB
AnonHugePages:     40000 kB
VmFlags: rd wr mr mw me ac sd hg
7f0004000000-7f0008000000 rw-p 00000000 00:00 0
Anonymous:         65536 kB
AnonHugePages:         0 kB
VmFlags: rd wr mr mw me ac sd
"""


@pytest.mark.parametrize(
    ("address", "share"), [(0x7F0000000000, 2 / 3), (0x7F0003FFFFFF, 2 / 3), (0x7F0004000000, 0.0), (0x1000, 0.0)]
)
def test_the_share_of_one_mapping(address, share):
    assert memory.huge_share(SMAPS, address) == pytest.approx(share)


@pytest.mark.parametrize(
    ("at", "huge", "asks", "seen"),
    [
        (0x7F0000000000, 1, False, "most"), (0x7F0004000000, 1, False, "some"), (0x7F0000000000, 0, False, "none"),
        # PyTorch asks for its large tensors only, and there is none yet
        (0x7F0000000000, 0, True, "most"), (0x7F0004000000, 0, True, "none"),
    ],
)  # fmt: skip
def test_a_new_block_stands_for_what_a_small_process_would_work_with(monkeypatch, at, huge, asks, seen):
    """Whether PyTorch asks shows there, and not in the variable, which the program may have changed since."""
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0" if asks else "1")
    smaps = SMAPS if asks else SMAPS.replace(" hg", "")
    block = SimpleNamespace(fill_=lambda value: block, data_ptr=lambda: at)
    torch = SimpleNamespace(empty=lambda size, dtype, device: block, uint8=None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    rollup = f"Anonymous:       1000 kB\nAnonHugePages:   {huge} kB\n"
    monkeypatch.setattr(memory, "_text", lambda path: {"smaps_rollup": rollup, "smaps": smaps}.get(path.name, ""))
    assert memory.probe()["huge_pages"] == seen
    large = rollup.replace("1000 kB", "1000000 kB")  # a training, whose own memory says what it got
    monkeypatch.setattr(memory, "_text", lambda path: {"smaps_rollup": large, "smaps": smaps}.get(path.name, ""))
    assert memory.probe()["huge_pages"] == (seen if huge else "none")
