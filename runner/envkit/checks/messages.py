"""Messages of the checks."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

_RAISE = "raise it (ulimit -u, TasksMax of systemd, --pids-limit of a container)"


class ProcessLimitNear(Message):
    """The limit that is nearly reached on this machine. ``limit`` names it and the present use."""

    template = "no more processes or threads could be started: {limit}; training needs about {needed:,} more; " + _RAISE

    limit: Message
    needed: int


class AddressSpaceLimit(Message):
    """The address space of a process is limited to so many bytes, and a thread's stack did not fit."""

    template = (
        "no more threads could be started: address space is limited to {limit_bytes:size}, and each thread takes its "
        "stack from it; raise the limit (ulimit -v, h_vmem of Grid Engine), or lower OMP_STACKSIZE"
    )

    limit_bytes: int


class Reason(Note):
    """Why a finding matters: the ``text`` that a table has for its code."""

    template = "{text}"

    text: str


class Remedy(Advice):
    """The change that removes a finding: the ``text`` that a table has for its code."""

    template = "{text}"

    text: str


class Spoils(Message):
    """A finding of doctor's: what was seen, and why it spoils a measurement."""

    template = "{seen}: {why}"

    seen: Message
    why: Message


class Worthless(Message):
    """A finding of doctor's makes the measurement of a profile worthless."""

    template = "profile '{profile}': {reason}; fix: {fix}; or measure it anyway with --force"

    profile: str
    reason: Spoils
    fix: Message


class NotInEffect(Message):
    """A setting of a profile did not take effect in a sample."""

    template = "{profile} was not in effect: {unmet}"

    profile: str
    unmet: Message


class MoreAlike(Note):
    """A finding stands for ``more`` others like it."""

    template = "{seen} (and {more} more like this)"

    seen: Message
    more: int


class ProcessLimitElsewhere(Message):
    """A limit of a container, which can't be read from outside."""

    template = (
        "no more processes or threads could be started: a limit where the worker ran is reached; "
        f"{_RAISE}, or lower OMP_STACKSIZE"
    )


# Why a sample counts as disturbed.


class OthersUsed(Caution):
    """Other programs used the sample's CPUs."""

    template = "others used {cpus:.2f} CPUs"

    cpus: float


class CpusStolen(Caution):
    """The hypervisor withheld CPU time."""

    template = "hypervisor took {cpus:.2f} CPUs"

    cpus: float


class Swapped(Caution):
    """The machine swapped."""

    template = "{swapped:size} swapped"

    swapped: float


class TooHot(Caution):
    """Cores were slowed down because they were too hot."""

    template = "cores too hot {times:count time}"

    times: int
