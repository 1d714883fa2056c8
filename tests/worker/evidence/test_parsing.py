"""What runtimes print of themselves, taken from real ones."""

from __future__ import annotations

import pytest
from envkit.worker.evidence.malloc import parse_mimalloc, parse_tunables
from envkit.worker.evidence.memory import advised
from envkit.worker.evidence.openmp import parse_display
from envkit.worker.libraries import named_as

GNU = """
libgomp: Invalid value for environment variable OMP_PLACES

OPENMP DISPLAY ENVIRONMENT BEGIN
  _OPENMP = '201511'
  [host] OMP_DYNAMIC = 'FALSE'
  [host] OMP_NUM_THREADS = '2'
  [all] OMP_SCHEDULE = 'DYNAMIC'
  [host] OMP_PLACES = '{0},{1}'
  [host] OMP_STACKSIZE = '0'
  [host] GOMP_SPINCOUNT = '300000'
  [host] OMP_TOOL_LIBRARIES = ''
OPENMP DISPLAY ENVIRONMENT END
"""
INTEL = """
OPENMP DISPLAY ENVIRONMENT BEGIN
   _OPENMP='201611'
  [host] KMP_AFFINITY='noverbose,warnings,respect,granularity=thread,compact,1,0'
  [host] KMP_BLOCKTIME='0ms'
  [host] OMP_NUM_THREADS='2'
  [host] KMP_AFFINITY_X: value is not defined
OPENMP DISPLAY ENVIRONMENT END
"""
TUNABLES = """glibc.rtld.nns: 0x4 (min: 0x1, max: 0x10)
glibc.malloc.trim_threshold: 0x100000000 (min: 0x0, max: 0xffffffffffffffff)
glibc.malloc.mxfast: 0x0 (min: 0x0, max: 0xffffffffffffffff)
glibc.malloc.hugetlb: 1 (min: 0, max: 18446744073709551615)
glibc.elision.skip_lock_busy: 3 (min: 0, max: 2147483647)
glibc.malloc.perturb: -1 (min: -2, max: 255)
glibc.cpu.hwcaps: some,words (min: 0, max: 0)
glibc.mem.tagging: (no value)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GNU, {
            "_OPENMP": "201511", "OMP_DYNAMIC": "FALSE", "OMP_NUM_THREADS": "2", "OMP_SCHEDULE": "DYNAMIC",
            "OMP_PLACES": "{0},{1}", "OMP_STACKSIZE": "0", "GOMP_SPINCOUNT": "300000", "OMP_TOOL_LIBRARIES": "",
        }),
        (INTEL, {
            "_OPENMP": "201611", "KMP_AFFINITY": "noverbose,warnings,respect,granularity=thread,compact,1,0",
            "KMP_BLOCKTIME": "0ms", "OMP_NUM_THREADS": "2",
        }),
        ("", {}),
    ],
)  # fmt: skip
def test_parse_display(text, expected):
    assert parse_display(text) == expected


def test_parse_tunables():
    assert parse_tunables(TUNABLES) == {
        "glibc.rtld.nns": 4, "glibc.malloc.trim_threshold": 2**32, "glibc.malloc.mxfast": 0, "glibc.malloc.hugetlb": 1,
        "glibc.elision.skip_lock_busy": 3, "glibc.malloc.perturb": -1, "glibc.cpu.hwcaps": "some,words",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/venv/lib/libiomp5.so", True),
        ("/torch/lib/libgomp-a34b3233.so.1", True),
        ("/usr/lib/libgomp.so.1.0.0", True),
        ("/usr/lib/llvm-14/lib/libomp.so.5", True),
        ("/usr/lib/libompd.so", False),
        ("/usr/lib/libm.so.6", False),
    ],
)
def test_named_like_runtime(path, named):
    assert bool(named_as(path, "openmp")) is named


@pytest.mark.parametrize(
    ("path", "allocator"),
    [
        ("/usr/lib/libjemalloc.so.2", "jemalloc"),
        ("/usr/lib/libtcmalloc_minimal.so.4.5.10", "tcmalloc"),
        ("/usr/lib/libmimalloc-secure.so.2", "mimalloc-2"),
        ("/venv/site-packages/cmeel.prefix/lib/libmimalloc.so.3.4", "mimalloc"),
        ("/opt/lib/libmimalloc.so", None),  # of which release it is, what it exports says
        ("/lib/x86_64-linux-gnu/libc.so.6", "glibc"),
        ("/lib/libc-2.31.so", "glibc"),
        ("/usr/lib/libasan.so.8", None),
    ],
)
def test_named_like_allocator(path, allocator):
    assert named_as(path, "allocator") == allocator


@pytest.mark.parametrize("name", ["mimalloc: ", ""])  # later releases of version 3 leave it out
def test_options_of_mimalloc_by_the_variables_that_set_them(name):
    listing = (
        "mimalloc: option 'show_errors': 0\nmimalloc: option 'reserve_huge_os_pages_at': -1\n"
        "mimalloc: option 'arena_reserve': 1048576 KiB\nmimalloc: process init: 0x7fa2\nheap stats:    peak\n"
    )
    assert parse_mimalloc(listing.replace("mimalloc: option", f"{name}option")) == {
        "MIMALLOC_SHOW_ERRORS": 0, "MIMALLOC_RESERVE_HUGE_OS_PAGES_AT": -1, "MIMALLOC_ARENA_RESERVE": 1048576,
    }  # fmt: skip


SMAPS = """7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
VmFlags: rd wr mr mw me ac sd hg
7f0000400000-7f0000800000 rw-p 00000000 00:00 0
Size:               4096 kB
VmFlags: rd wr mr mw me ac sd
"""


@pytest.mark.parametrize(
    ("address", "asked"), [(0x7F0000000000, True), (0x7F00003FFFFF, True), (0x7F0000400000, False), (0x1000, False)]
)
def test_the_mapping_at_an_address_says_whether_huge_pages_were_asked_for(address, asked):
    assert advised(SMAPS, address) is asked
