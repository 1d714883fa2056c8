"""Watch a process and its children from outside, through /proc, and say what was seen in the words of the evidence."""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.engines.owner import stat_fields
from runner.worker.evidence.openmp import named_like_runtime
from runner.worker.host import expand_cpu_list

INTERVAL_S = 0.1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _runs(pid: int) -> bool:
    """Whether it has not ended; one that nobody has waited for yet has."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] != "Z"


def watch(pid: int, seconds: float) -> dict[str, Any]:
    """What process ``pid`` and those that it started did for ``seconds``, or until they ended.

    ``threads.runnable`` is the median number of threads that ran or wanted to; start-up, with at most one such
    thread, is left out. The masks are those of the threads that were seen to run.
    """
    runnable: list[int] = []
    seen: dict[str, str] = {}
    mapped: dict[str, None] = {}
    usage: dict[int, tuple[float, float, int]] = {}
    alone: dict[int, str] = {}  # children that may run on one CPU only
    begin = time.monotonic()
    while time.monotonic() < begin + seconds and _runs(pid):
        running = 0
        for process in _tree(pid):
            fields = stat_fields(process)
            if fields is None or fields[0] == "Z":
                continue
            usage[process] = (int(fields[11]) / TICKS_PER_S, int(fields[12]) / TICKS_PER_S, int(fields[7]))
            mapped.update(dict.fromkeys(_runtimes(process)))
            threads = list(_threads(process))
            own = {mask for _, _, mask in threads}
            if process != pid and len(own) == 1 and len(expand_cpu_list(*own)) == 1:
                alone[process] = own.pop()
            for thread, state, mask in threads:
                if state == "R":
                    running += 1
                    seen[f"{process}/{thread}"] = mask
        runnable.append(running)
        time.sleep(INTERVAL_S)
    masks = Counter(seen.values())
    user, system, faults = (sum(column) for column in zip(*usage.values(), strict=True)) if usage else (0.0, 0.0, 0)
    busy = [count for count in runnable if count > 1] or runnable
    return {
        "openmp": {"mapped": list(mapped)},
        "threads": {"runnable": round(statistics.median(busy)) if busy else 0, "masks": dict(sorted(masks.items()))},
        "children": {"on_one_cpu": max(Counter(alone.values()).values(), default=0)},
        "usage": {
            "seconds": time.monotonic() - begin,
            "system_share": system / (user + system) if user + system else 0.0,
            "faults_per_s": faults / max(time.monotonic() - begin, INTERVAL_S),
        },
    }


def _tree(pid: int) -> Iterator[int]:
    """``pid`` and everything that descends from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = stat_fields(int(entry.name))
        if fields:
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    todo = [pid]
    while todo:
        current = todo.pop()
        yield current
        todo += parents.get(current, [])


def _threads(pid: int) -> Iterator[tuple[str, str, str]]:
    """Number, state and CPU list of each thread."""
    for task in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            fields = dict(line.split(":", 1) for line in task.read_text().splitlines() if ":" in line)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        yield task.parent.name, fields["State"].split()[0], fields["Cpus_allowed_list"].strip()


def _runtimes(pid: int) -> list[str]:
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if ".so" in line and line.count("/"))
    return [path for path in paths if named_like_runtime(path)]
