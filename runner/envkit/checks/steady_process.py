"""Measure from outside what a running training and its processes use for some seconds.

Only counters of the kernel are read, and for a span of time alone, so that how it started does not count. Source of
the formats: proc_pid_stat(5), and for the delay of threads that could run the kernel's
Documentation/scheduler/sched-stats.rst (nanoseconds).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from envkit.checks.doctor.cpu_use_findings import trainer
from envkit.checks.evidence import cpu_use as cpu_use_of
from envkit.checks.process_messages import EndedWhileWatched, NoSuchProcess, ProcessOfOther, ProcessWithoutTorch
from envkit.common.errors import InputError
from envkit.worker import left
from envkit.worker.evidence import cpu_use
from envkit.worker.evidence.cpu_use import CpuUseDocument
from envkit.worker.measure import machine_load
from envkit.worker.readings import matching, text_of
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


class ResourceUse(TypedDict, total=False):
    """Resources that processes used while they were watched."""

    seconds: float  # from the first look to the last
    usage: dict[str, float]  # the fields of ``process_tree.Usage``, and of ``watch`` those of its CPUs
    waited_s: float  # summed over threads that could have run
    cpu_use: CpuUseDocument  # of the process that trains


class CpuUse:
    """Look from outside at how processes with PyTorch compute (``envkit.worker.evidence.cpu_use``)."""

    def __init__(self) -> None:
        self._last: dict[int, CpuUseDocument] = {}
        self._first: dict[int, tuple[float, float]] = {}  # when it was looked at, and its CPU time (seconds)

    def look(self, pids: Iterable[int]) -> None:
        """Look at processes now; those that have no PyTorch do not count."""
        for pid in pids:
            use, now = cpu_use.of_process(pid), time.monotonic()
            if use is None:
                continue
            since_s, before_s = self._first.setdefault(pid, (now, use["cpu_s"]))
            threads = use["threads"]
            if threads is not None and use["cpu_s"] - before_s > (threads + SPARE_CPUS) * max(now - since_s, 1.0):
                use.pop("threads_by", None)  # it has changed that number since it was started
            self._last[pid] = use

    def of_trainer(self, left_in: Path | None = None) -> CpuUseDocument:
        """Return that of the process that trains; its own document, in the folder ``left_in``, counts more."""
        reported: dict[int, CpuUseDocument] = {}
        for document in left.evidence(left_in).documents if left_in is not None else ():
            if "cpu_use" in document["evidence"]:
                reported[document["pid"]] = cpu_use_of(document["evidence"])
        uses: list[CpuUseDocument] = []
        for pid in {*reported, *self._last}:
            use = reported.get(pid) or self._last.get(pid) or {}
            if pid in self._last:
                times = self._last[pid]
                use = {**use, "cpu_s": times["cpu_s"], "helper_cpu_s": times["helper_cpu_s"]}
            uses.append(use)
        return cpu_use_of(trainer([{"cpu_use": use} for use in uses] or [{}]))


def watch(pid: int, seconds: float) -> ResourceUse:
    """Return what process ``pid`` and those that it started used for ``seconds``, or until it ended: as ``increase``.

    ``usage`` also has the time of all programs on its CPUs, as ``engines.measurement.Usage`` calls that.
    Raises InputError for a process that is not there, is another user's, has no PyTorch, or ends at once.
    """
    looks, used = [look(pid)], CpuUse()
    _require(pid, looks[0])
    used.look(looks[0].tree.processes)
    cpus = _cpus(pid)
    before = machine_load.read()
    while looks[-1].at_s < looks[0].at_s + seconds and pid in looks[-1].tree.processes:
        time.sleep(max(INTERVAL_S, (time.perf_counter() - looks[-1].at_s) / LARGEST_SHARE))
        looks.append(look(pid))
    load = _load(before, machine_load.read(), cpus)
    passed = looks[-1].at_s - looks[0].at_s
    if passed < min(SHORTEST_S, seconds):
        raise InputError(EndedWhileWatched(pid, passed))
    used.look(looks[-1].tree.processes)
    increased = increase(looks)
    return {**increased, "usage": {**increased["usage"], **load}, "cpu_use": used.of_trainer()}


def _cpus(pid: int) -> set[int]:
    """Return the CPUs that a process may use; none if it has ended."""
    try:
        return os.sched_getaffinity(pid)
    except OSError:
        return set()


def _load(before: machine_load.Counters, after: machine_load.Counters, cpus: set[int]) -> dict[str, float]:
    """Return the time of all programs on ``cpus`` and the stolen time; nothing if one of these CPUs is unknown."""
    if not cpus or not cpus <= before.cpus.keys() & after.cpus.keys():
        return {}
    return {
        "worker_cpus": len(cpus),
        "worker_cpus_busy_s": sum(after.cpus[cpu].programs_s - before.cpus[cpu].programs_s for cpu in cpus),
        "worker_cpus_steal_s": sum(after.cpus[cpu].steal_s - before.cpus[cpu].steal_s for cpu in cpus),
    }


def require(pid: int) -> None:
    """Raise InputError for a process that is not there, is another user's, or has no PyTorch."""
    _require(pid, look(pid))


def look(pid: int) -> Look:
    """At ``pid`` and everything that descends from it."""
    tree, waited_s = process_tree.look(pid), dict[int, float]()
    for process in tree.processes:
        waited_ns = 0
        for task in matching(Path(f"/proc/{process}/task"), "[0-9]*"):
            try:
                waited_ns += int((task / "schedstat").read_text().split()[1])
            except (OSError, IndexError):
                continue  # it has ended, or the kernel does not count that
        waited_s[process] = waited_ns / 1e9
    return Look(tree, waited_s)


def increase(looks: Sequence[Look]) -> ResourceUse:
    """Return the resources that were used from the first look to the last.

    A process that began meanwhile had used nothing before; of one that ended, its last reading counts.
    """
    first = looks[0]
    processes = {pid: usage for look in looks for pid, usage in look.tree.processes.items()}
    waited_s = {pid: seconds for look in looks for pid, seconds in look.waited_s.items()}
    together = process_tree.Look(looks[-1].at_s, processes)
    used = process_tree.increase(first.tree, together, without=())
    return {
        "seconds": used.seconds,
        "usage": used.usage._asdict(),
        "waited_s": sum(seconds - first.waited_s.get(pid, 0.0) for pid, seconds in waited_s.items()),
    }


def _require(pid: int, look: Look) -> None:
    """Raise InputError if a process can't be watched, or neither it nor what it started has PyTorch."""
    try:
        mapped = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        raise InputError(NoSuchProcess(pid)) from None
    except PermissionError:
        raise InputError(ProcessOfOther(pid)) from None
    started = look.tree.processes.keys() - {pid}  # of which any may have ended since
    if TORCH not in mapped + "".join(text_of(Path(f"/proc/{process}/maps")) for process in started):
        raise InputError(ProcessWithoutTorch(pid))
