"""What the processes use that a training has started beside itself: DataLoader's workers."""

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
    """What is counted of this process' children that run now, since each of them began; times in seconds.

    Without it the time that they take would look like that of other programs. Source of the formats: proc_pid_stat(5)
    and proc_pid_status(5).
    """
    total: dict[str, float] = dict.fromkeys(COUNTED, 0)
    for child in multiprocessing.active_children():
        for name, value in _of(root / f"proc/{child.pid}").items():
            total[name] += value
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


def _of(process: Path) -> dict[str, float]:
    """The counters of one process; nothing of one that has just ended."""
    try:
        stat = (process / "stat").read_text().rpartition(")")[2].split()
        status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    except OSError:
        return {}
    return {
        # the first field here is the third of the manual's
        "minor_faults": int(stat[7]),
        "major_faults": int(stat[9]),
        "user_s": int(stat[11]) / TICKS_PER_S,
        "system_s": int(stat[12]) / TICKS_PER_S,
        "voluntary_switches": int(status["voluntary_ctxt_switches"]),
        "involuntary_switches": int(status["nonvoluntary_ctxt_switches"]),
    }
