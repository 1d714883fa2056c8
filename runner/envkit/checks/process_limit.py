"""Say which limit it was where no more processes or threads could be started."""

from __future__ import annotations

import re

from envkit.checks.doctor.process_findings import SPARE_PROCESSES
from envkit.worker.evidence.limits import processes
from envkit.worker.host import cpu_facts

# What runtimes, Python and shells print then (EAGAIN of clone(2)).
PRINTED = re.compile(
    r"libgomp: Thread creation failed|OMP: Error #34|can't start new thread|pthread_create\w* failed|"
    r"fork: (?:retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]"
)
FIX = "raise it (ulimit -u, TasksMax of systemd, --pids-limit of a container)"


def reached() -> str:
    """Which limit is nearly reached here, and what is needed; a limit of a container's is not seen from outside."""
    needed = SPARE_PROCESSES + int(cpu_facts()["usable_cpus"])
    free, limit = processes()
    if free is None or free >= needed:
        return f"a limit of processes and threads where it ran is reached; {FIX}"
    return f"{limit}, and a training needs room for about {needed} more; {FIX}"


def explained(printed: str) -> str:
    """What to add to how a worker failed, by what it ``printed``; nothing where it was something else."""
    return f"; it could start no more processes or threads: {reached()}" if PRINTED.search(printed) else ""
