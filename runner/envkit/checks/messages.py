"""Messages of the checks."""

from __future__ import annotations

from envkit.messages import Message

_RAISE = "raise it (ulimit -u, TasksMax of systemd, --pids-limit of a container)"


class ProcessLimitNear(Message):
    """The limit that is nearly reached on this machine. ``limit`` names it and the present use."""

    code = "checks.process-limit-near"
    template = "no more processes or threads could be started: {limit}; training needs about {needed:,} more; " + _RAISE

    limit: str
    needed: int


class ProcessLimitElsewhere(Message):
    """A limit of a container, which can't be read from outside."""

    code = "checks.process-limit-elsewhere"
    template = "no more processes or threads could be started: a limit where the worker ran is reached; " + _RAISE
