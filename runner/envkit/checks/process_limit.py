"""Find out which limit was reached when no more processes or threads could be started."""

from __future__ import annotations

import re

from envkit.checks.doctor.process_findings import SPARE_PROCESSES
from envkit.checks.messages import ProcessLimitElsewhere, ProcessLimitNear
from envkit.worker.evidence.limits import processes
from envkit.worker.host import cpu_facts

# What runtimes, Python and shells print then (EAGAIN of clone(2)).
PRINTED = re.compile(
    r"libgomp: Thread creation failed|OMP: Error #34|can't start new thread|pthread_create\w* failed|"
    r"fork: (?:retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]"
)


def reached() -> ProcessLimitNear | ProcessLimitElsewhere:
    """Return the limit that is nearly reached here. A container's own limit can't be read from outside."""
    needed = SPARE_PROCESSES + int(cpu_facts()["usable_cpus"])
    free, limit = processes()
    if free is None or limit is None or free >= needed:
        return ProcessLimitElsewhere()
    return ProcessLimitNear(limit, needed)


def cause_of(printed: str) -> ProcessLimitNear | ProcessLimitElsewhere | None:
    """Return why a worker failed that ``printed`` this, or None if no limit of processes was the cause."""
    return reached() if PRINTED.search(printed) else None
