"""The resources that a training's helper processes use: DataLoader's workers."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# What is counted of a process, and what getrusage(2) calls it.
COUNTED = {
    "user_s": "ru_utime", "system_s": "ru_stime", "minor_faults": "ru_minflt", "major_faults": "ru_majflt",
    "voluntary_switches": "ru_nvcsw", "involuntary_switches": "ru_nivcsw",
}  # fmt: skip


def used(root: Path = Path("/")) -> dict[str, float]:
    """Return the counters of this process' children that run now, since each of them began; times in seconds.

    Without it the time that they take would look like that of other programs. Children that have ended are counted by
    their parent; where that is a server which forks them (the start method forkserver), what it knows is added, which
    is all but switches. Source of the formats: proc_pid_stat(5) and proc_pid_status(5).
    """
    total: dict[str, float] = dict.fromkeys(COUNTED, 0)
    servers: set[int | None] = set()
    for child in multiprocessing.active_children():
        _add(total, root / f"proc/{child.pid}")
        servers.add(_parent(root / f"proc/{child.pid}"))
    for server in servers - {None, os.getpid()}:
        _add(total, root / f"proc/{server}", ended_children=True)
    return total


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Have them wait meanwhile: else they would make batches ahead in a time that is not the training's."""
    children = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    try:
        _send(signal.SIGSTOP, children)
        yield
    finally:
        _send(signal.SIGCONT, children)


def _send(number: int, children: list[int]) -> None:
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _stat(process: Path) -> list[str]:
    """The fields from the third of the manual's on. Raises OSError for a process that has just ended."""
    return (process / "stat").read_text().rpartition(")")[2].split()


def _parent(process: Path) -> int | None:
    try:
        return int(_stat(process)[1])
    except OSError:
        return None


def _add(total: dict[str, float], process: Path, ended_children: bool = False) -> None:
    """The counters of one process, with those of its children that have ended; nothing of one that has just ended."""
    try:
        stat = _stat(process)
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    except OSError:
        return
    minor, major, user, system = (int(stat[at]) if ended_children else 0 for at in (8, 10, 13, 14))
    total["minor_faults"] += int(stat[7]) + minor
    total["major_faults"] += int(stat[9]) + major
    total["user_s"] += (int(stat[11]) + user) / TICKS_PER_S
    total["system_s"] += (int(stat[12]) + system) / TICKS_PER_S
    total["voluntary_switches"] += int(status["voluntary_ctxt_switches"])
    total["involuntary_switches"] += int(status["nonvoluntary_ctxt_switches"])
