"""Measure from outside what a running training and its processes use for some seconds.

Only counters of the kernel are read, and for a span of time alone, so that how it started does not count. Source of
the formats: proc_pid_stat(5), and for the delay of threads that could run the kernel's
Documentation/scheduler/sched-stats.rst (nanoseconds).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.checks.doctor.cpu_use_findings import trainer
from envkit.checks.process_messages import EndedWhileWatched, NoSuchProcess, ProcessOfOther, ProcessWithoutTorch
from envkit.common.errors import InputError
from envkit.worker import left
from envkit.worker.evidence import cpu_use
from envkit.worker.user_command import process_tree

INTERVAL_S = 0.25
# Of a CPU: a look at many threads takes long, and the next one then comes later.
LARGEST_SHARE = 0.02
# A process uses so much more than its threads of a parallel operation do: other threads of it compute as well.
SPARE_CPUS = 0.5
# Of one that ends meanwhile, as much must have been seen.
SHORTEST_S = 3.0
# What maps PyTorch's library.
TORCH = "libtorch"


@dataclass(frozen=True)
class Look:
    """CPU time that processes had used at one look, and how long their threads had waited for a CPU (seconds), by
    pid.
    """

    tree: process_tree.Look
    waited_s: dict[int, float]

    @property
    def at_s(self) -> float:
        return self.tree.at_s


class CpuUse:
    """Look from outside at how processes with PyTorch compute (``envkit.worker.evidence.cpu_use``)."""

    def __init__(self) -> None:
        self._last: dict[int, dict[str, Any]] = {}
        self._first: dict[int, tuple[float, float]] = {}  # when it was looked at, and its CPU time (seconds)

    def look(self, pids: Iterable[int]) -> None:
        """Look at processes now; those that have no PyTorch do not count."""
        for pid in pids:
            found, now = cpu_use.of_process(pid), time.monotonic()
            if found is None:
                continue
            since_s, before_s = self._first.setdefault(pid, (now, found["cpu_s"]))
            threads = found["threads"]
            if threads is not None and found["cpu_s"] - before_s > (threads + SPARE_CPUS) * max(now - since_s, 1.0):
                found.pop("threads_by", None)  # it has changed that number since it was started
            self._last[pid] = found

    def of_trainer(self, left_in: Path | None = None) -> dict[str, Any]:
        """Return that of the process that trains; what it said itself, in the folder ``left_in``, counts more."""
        said = {} if left_in is None else {
            document["pid"]: cpu_use
            for document in left.evidence(left_in).documents
            if isinstance(cpu_use := document["evidence"].get("cpu_use"), dict)
        }  # fmt: skip
        times = {pid: {name: one[name] for name in ("cpu_s", "helper_cpu_s")} for pid, one in self._last.items()}
        both = {pid: {**said.get(pid, self._last.get(pid, {})), **times.get(pid, {})} for pid in {*said, *self._last}}
        return dict(trainer([{"cpu_use": one} for one in both.values()] or [{}]).get("cpu_use", {}))


def watch(pid: int, seconds: float) -> dict[str, Any]:
    """Return what process ``pid`` and those that it started used for ``seconds``, or until it ended: as ``increase``.

    Raises InputError for a process that is not there, is another user's, has no PyTorch, or ends at once.
    """
    looks, used = [look(pid)], CpuUse()
    _require(pid, looks[0])
    used.look(looks[0].tree.processes)
    while looks[-1].at_s < looks[0].at_s + seconds and pid in looks[-1].tree.processes:
        time.sleep(max(INTERVAL_S, (time.perf_counter() - looks[-1].at_s) / LARGEST_SHARE))
        looks.append(look(pid))
    passed = looks[-1].at_s - looks[0].at_s
    if passed < min(SHORTEST_S, seconds):
        raise InputError(EndedWhileWatched(pid, passed))
    used.look(looks[-1].tree.processes)
    return {**increase(looks), "cpu_use": used.of_trainer()}


def require(pid: int) -> None:
    """Raise InputError for a process that is not there, is another user's, or has no PyTorch."""
    _require(pid, look(pid))


def look(pid: int) -> Look:
    """At ``pid`` and everything that descends from it."""
    tree, waited_s = process_tree.look(pid), dict[int, float]()
    for process in tree.processes:
        waited_ns = 0
        for task in Path(f"/proc/{process}/task").glob("[0-9]*"):
            try:
                waited_ns += int((task / "schedstat").read_text().split()[1])
            except (OSError, IndexError):
                continue  # it has ended, or the kernel does not count that
        waited_s[process] = waited_ns / 1e9
    return Look(tree, waited_s)


def increase(looks: Sequence[Look]) -> dict[str, Any]:
    """``seconds`` from the first look to the last, ``usage`` and ``waited_s`` in that time.

    A process that began meanwhile had used nothing before; of one that ended, its last reading counts.
    """
    first = looks[0]
    processes = {pid: usage for one in looks for pid, usage in one.tree.processes.items()}
    waited_s = {pid: seconds for one in looks for pid, seconds in one.waited_s.items()}
    whole = process_tree.Look(looks[-1].at_s, processes)
    found = process_tree.increase(first.tree, whole, without=())
    return {
        "seconds": found["seconds"],
        "usage": {name: found[name] for name in process_tree.Usage._fields},
        "waited_s": sum(seconds - first.waited_s.get(pid, 0.0) for pid, seconds in waited_s.items()),
    }


def _require(pid: int, seen: Look) -> None:
    """Raise InputError if a process can't be watched, or neither it nor what it started has PyTorch."""
    try:
        mapped = "".join(Path(f"/proc/{one}/maps").read_text(errors="replace") for one in {pid, *seen.tree.processes})
    except (FileNotFoundError, ProcessLookupError):
        raise InputError(NoSuchProcess(pid)) from None
    except PermissionError:
        raise InputError(ProcessOfOther(pid)) from None
    if TORCH not in mapped:
        raise InputError(ProcessWithoutTorch(pid))
