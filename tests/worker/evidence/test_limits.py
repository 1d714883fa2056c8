"""What a process is held to, as it sees it itself."""

from __future__ import annotations

import errno
import os
import resource
from types import SimpleNamespace

import pytest
from envkit.worker.evidence import limits
from envkit.worker.messages.evidence import GroupLimit, UserLimit

ORDINARY_USER = 65534


def test_this_process():
    found = limits.probe()
    assert found["user_id"] == os.getuid()
    assert found["affinity_cpus"] == len(os.sched_getaffinity(0))
    assert found["peak_memory_bytes"] == pytest.approx(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, rel=0.1
    )
    assert found["seccomp"] in ("off", "strict", "filter")


@pytest.mark.parametrize(
    ("result", "error", "allowed"), [(0, 0, True), (-1, errno.EPERM, False), (-1, errno.ENOSYS, None)]
)
def test_whether_numa_calls_are_allowed(monkeypatch, result, error, allowed):
    monkeypatch.setattr(limits.platform, "machine", lambda: "x86_64")
    kernel = SimpleNamespace(syscall=lambda *words: result)
    monkeypatch.setattr(limits.ctypes, "CDLL", lambda *words, **options: kernel)
    monkeypatch.setattr(limits.ctypes, "get_errno", lambda: error)
    assert limits.probe()["numa_calls"] is allowed


@pytest.mark.parametrize(
    ("user", "limit", "free", "expected"),
    [
        (ORDINARY_USER, 1000, None, 990), (ORDINARY_USER, 1000, 5, 5), (ORDINARY_USER, 12, 500, 2),
        (ORDINARY_USER, -1, None, None),
        # the group alone holds root
        (0, 12, None, None), (0, 12, 7, 7),
    ],
)  # fmt: skip
def test_the_least_of_the_users_and_the_groups_limit_counts(monkeypatch, user, limit, free, expected):
    monkeypatch.setattr(limits, "pids_limit", lambda: None if free is None else (free + 3, 3))
    monkeypatch.setattr(limits.os, "getuid", lambda: user)
    monkeypatch.setattr(limits.resource, "getrlimit", lambda which: (limit, limit))
    counted = iter([10])  # the threads that are mine are in one process
    monkeypatch.setattr(limits, "_threads_if_mine", lambda path: next(counted, 0))
    room, said = limits.processes()
    assert room == expected
    of_group = GroupLimit(0 if free is None else free + 3, 3)
    assert said == (None if expected is None else of_group if expected == free else UserLimit(limit, 10))


def test_threads_of_other_users_do_not_count(tmp_path):
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.write_text(f"Name:\tx\nUid:\t{os.getuid()}\t0\t0\t0\nThreads:\t12\n")
    other.write_text(f"Name:\tx\nUid:\t{os.getuid() + 1}\t0\t0\t0\nThreads:\t12\n")
    assert limits._threads_if_mine(mine) == 12
    assert limits._threads_if_mine(other) == 0
    assert limits._threads_if_mine(tmp_path / "ended") == 0
