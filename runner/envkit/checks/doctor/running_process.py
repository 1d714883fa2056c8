"""Watch a process and its children from outside, through /proc, and say what was seen in the words of the evidence."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from envkit.checks import steady_process
from envkit.checks.evidence import Variables
from envkit.engines.owner import stat_fields
from envkit.worker.cgroup import held_memory, memory_limit
from envkit.worker.evidence.cpu_use import CpuUseDocument
from envkit.worker.evidence.openmp import replaces_others
from envkit.worker.host import expand_cpu_list
from envkit.worker.initial_environment import started_with
from envkit.worker.libraries import named_as
from envkit.worker.performance_variables import PRELOAD, is_performance_variable, preloaded
from envkit.worker.readings import matching, text_of
from envkit.worker.user_command import process_tree

INTERVAL_S = 0.1
LOOKS = 10  # in so many of them there is one at who decided on threads and CPUs, which takes longer


class WatchedEvidence(TypedDict, total=False):
    """A process and its children as seen from outside, with the names of a worker's evidence."""

    steady: steady_process.ResourceUse  # since it began to work in parallel
    openmp: dict[str, list[str]]
    variables: Variables
    threads: dict[str, object]
    cpu_use: CpuUseDocument
    limits: dict[str, int | None]
    children: dict[str, int]
    usage: dict[str, float]


def _runs(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for yet has."""
    fields = stat_fields(pid)
    return fields is not None and fields[:1] not in ([], ["Z"])


def watch(pid: int, seconds: float, left_in: Path | None = None) -> WatchedEvidence:
    """Return what process ``pid`` and those that it started did for ``seconds``, or until they ended.

    Processes with the evidence hook say in the folder ``left_in`` how they compute.

    ``threads.runnable`` is the median number of threads that ran or wanted to; start-up, with at most one such
    thread, is left out, as it is of ``steady`` (``steady_process.increase``). The masks are those of the threads that
    were seen to run.
    """
    runnable: list[int] = []
    mask_of: dict[str, str] = {}  # by thread
    mapped: list[str] = []  # of the process that has most
    settings: dict[str, str] = {}  # its performance variables
    used = steady_process.CpuUse()
    alone: dict[int, str] = {}  # children that may run on one CPU only
    looks: list[steady_process.Look] = []  # since it began to work in parallel
    held = 0  # by all processes of the group that has a limit
    begin = time.monotonic()
    while time.monotonic() < begin + seconds and _runs(pid):
        running = 0
        for process in process_tree.look(pid).processes:
            if len(runtimes := _runtimes(process)) > len(mapped):
                mapped, settings = runtimes, _settings(process)
            threads = list(_threads(process))
            masks = {mask for _, _, mask in threads}
            if process != pid and len(masks) == 1 and len(expand_cpu_list(*masks)) == 1:
                alone[process] = masks.pop()
            for thread, state, mask in threads:
                if state == "R":
                    running += 1
                    mask_of[f"{process}/{thread}"] = mask
        runnable.append(running)
        held = max(held, held_memory() or 0)
        if looks or running > 1:
            looks.append(steady_process.look(pid))
        is_last = time.monotonic() + INTERVAL_S >= begin + seconds
        if len(runnable) % LOOKS == 0 or is_last:  # a short watch has fewer looks
            used.look(process_tree.look(pid).processes)
        time.sleep(INTERVAL_S)
    counts = Counter(mask_of.values())
    busy = [count for count in runnable if count > 1] or runnable
    steady: WatchedEvidence = {}
    if looks and looks[-1].at_s > looks[0].at_s:
        steady = {"steady": steady_process.increase(looks)}
    return {
        **steady,
        "openmp": {"mapped": mapped},
        "variables": {"sensitive": settings},
        "threads": {"runnable": round(statistics.median(busy)) if busy else 0, "masks": dict(sorted(counts.items()))},
        "cpu_use": used.of_trainer(left_in),
        "limits": {"memory_bytes": memory_limit(), "peak_memory_bytes": held or None},
        "children": {"on_one_cpu": max(Counter(alone.values()).values(), default=0)},
        "usage": {
            "seconds": time.monotonic() - begin,
        },
    }


def _threads(pid: int) -> Iterator[tuple[str, str, str]]:
    """Yield the number, state and CPU list of each thread."""
    for task in matching(Path(f"/proc/{pid}/task"), "*/status"):
        fields = dict(line.split(":", 1) for line in text_of(task).splitlines() if ":" in line)
        if "Cpus_allowed_list" in fields:  # else it has ended
            yield task.parent.name, fields["State"].split()[0], fields["Cpus_allowed_list"].strip()


def _settings(pid: int) -> dict[str, str]:
    """Return the performance variables that a process was started with."""
    try:
        block = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:  # it has ended, or is another user's
        return {}
    return {name: value for name, value in started_with(block).items() if is_performance_variable(name)}


def _runtimes(pid: int) -> list[str]:
    """Return the mapped OpenMP runtimes of a process, but for those that a preloaded one replaces."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
        block = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:  # it has ended, or is another user's
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if ".so" in line and line.count("/"))
    mapped = [path for path in paths if named_as(path, "openmp")]
    first = {str(Path(entry).resolve()) for entry in preloaded(started_with(block).get(PRELOAD, ""))}
    replacing = [path for path in mapped if path in first and replaces_others(path)]
    return replacing[:1] or mapped
