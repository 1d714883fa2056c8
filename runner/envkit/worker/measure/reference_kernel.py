"""A fixed piece of work that tells how fast this machine is now, so that sessions on different days can be compared.

Half of its time hashes (cores) and half copies (memory), because training needs both. Every usable CPU does the same
amount at the same time, in a thread of its own; hashlib (for data larger than 2047 bytes) and ctypes' CDLL both
release the interpreter's lock meanwhile, as the Python documentation of the two modules says. Only the standard
library is imported, so that a worker that does this starts in a moment.

The digest of the work covers this whole file: after any edit, older baselines can no longer be normalised.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import TypedDict

from envkit.worker.host import cpu_facts

# Two of these per CPU are more than its share of any cache.
BUFFER_BYTES = 16 * 2**20
# What each CPU does in one pass, in buffers: about 50 ms of each on a server's core of 2025.
HASHED, COPIED = 4, 40
PASSES = 9
# Threads do not wait longer for one that has failed.
PATIENCE_S = 30.0


class ReferenceTime(TypedDict):
    """The wall time of the median pass, so that a spike in a few does not count.

    Times of works whose ``digest`` differs can't be compared.
    """

    seconds: float
    digest: str


def time_reference_kernel() -> ReferenceTime:
    """Do the work on all usable CPUs at once, and return how long it took."""
    cpus = cpu_facts()["usable_cpus"]
    begins: list[float] = []
    # the last thread to arrive notes when the pass begins, for all of them
    barrier = threading.Barrier(cpus, lambda: begins.append(time.perf_counter()), timeout=PATIENCE_S)
    ends: list[list[float]] = [[] for _ in range(cpus)]
    threads = [threading.Thread(target=_work, args=(barrier, of_cpu)) for of_cpu in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passes = [max(of_all) - begin for begin, *of_all in zip(begins, *ends)]
    return {"seconds": round(statistics.median(passes), 7), "digest": digest()}


def _work(barrier: threading.Barrier, ends: list[float]) -> None:
    """Do one CPU's share of each pass, and note when it was done."""
    libc = ctypes.CDLL(None)
    libc.memmove.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    source, target = _buffer(), _buffer()
    source_at, target_at = (ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in (source, target))
    for address in (source_at, target_at):
        libc.memset(address, 0x5A, BUFFER_BYTES)  # or the first pass would wait for the kernel to find the pages
    for _ in range(PASSES):
        barrier.wait()
        for _ in range(HASHED):
            hashlib.blake2b(source)
        for _ in range(COPIED):
            libc.memmove(target_at, source_at, BUFFER_BYTES)
        ends.append(time.perf_counter())


def _buffer() -> mmap.mmap:
    """Memory in small pages, whatever is set for huge ones: a change of that setting must not hide in the reference."""
    buffer = mmap.mmap(-1, BUFFER_BYTES)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        buffer.madvise(mmap.MADV_NOHUGEPAGE)
    return buffer


def digest() -> str:
    """SHA-256 of what decides what is computed, and how: this file, and who compiled BLAKE2b and memmove.

    CPython compiles BLAKE2b into itself (and never takes OpenSSL's), so its release series and its compiler stand for
    it; the C library's version stands for memmove.
    """
    compiler = sys.version.rpartition("[")[2].rstrip("]")
    python = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor} {compiler}"
    identity = [Path(__file__).read_bytes(), python.encode(), (os.confstr("CS_GNU_LIBC_VERSION") or "").encode()]
    return hashlib.sha256(b"\0".join(identity)).hexdigest()
