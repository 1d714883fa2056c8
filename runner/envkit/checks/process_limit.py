"""Find out which limit was reached when no more processes or threads could be started."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping

from envkit.checks.doctor.process_findings import SPARE_PROCESSES
from envkit.checks.messages import AddressSpaceLimit, ProcessLimitElsewhere, ProcessLimitNear
from envkit.messages import Message
from envkit.worker.evidence.limits import processes
from envkit.worker.host import cpu_facts
from envkit.worker.libraries import setting

# What runtimes, Python and shells print then (EAGAIN of clone(2), or of pthread_create(3) that can't map a stack).
PRINTED = re.compile(
    r"libgomp: Thread creation failed|OMP: Error #34|can't start new thread|pthread_create\w* failed|"
    r"fork: (?:retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]"
)

# A stack's size, as OpenMP runtimes take it.
SIZE = re.compile(r"\s*(\d{1,18})\s*([BKMGT]?)\s*$", re.IGNORECASE)


def reached() -> Message:
    """Return the limit that is nearly reached here, or else that of address space.

    Each thread takes its stack from that. A container's own limits can't be read from outside.
    """
    needed = SPARE_PROCESSES + int(cpu_facts()["usable_cpus"])
    free, limit = processes()
    if free is not None and limit is not None and free < needed:
        return ProcessLimitNear(limit, needed)
    return address_space() or ProcessLimitElsewhere()


def address_space() -> AddressSpaceLimit | None:
    """Return the limit of address space that this process has, as those that it starts will; None if unlimited."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else AddressSpaceLimit(most)


def too_large_stacks(variables: Mapping[str, str]) -> AddressSpaceLimit | None:
    """Return the limit of address space if the stacks of a team of threads with these ``variables`` exceed it."""
    stack = next(filter(None, (SIZE.match(variables.get(name, "")) for name in setting("stack"))), None)
    limit = address_space()
    if stack is None or limit is None:
        return None
    threads_variable = variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    threads = int(threads_variable) if threads_variable.isdecimal() else len(os.sched_getaffinity(0))
    size = int(stack[1]) * 1024 ** "BKMGT".index(stack[2].upper() or "K")
    return limit if (threads - 1) * size > limit.limit_bytes else None  # the first thread has a stack already


def cause_of(printed: str) -> Message | None:
    """Return why a worker failed that ``printed`` this, or None if it could start all threads and processes."""
    return reached() if PRINTED.search(printed) else None
