"""Who started a worker: written beside it, so that a later runner can tell what a killed one left behind."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from envkit.common.errors import InputError
from envkit.engines.setup_messages import NoProc

# On a container, the runner that started it.
LABEL = "envkit.owner"


def started(pid: int) -> str | None:
    """When a process started, in clock ticks since boot (field 22 of proc(5)'s stat); None if absent."""
    fields = stat_fields(pid)
    return fields[19] if fields else None


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on (the second, a name in brackets, may hold blanks)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def boot_id() -> str:
    """A random identifier of this boot of the kernel. Raises InputError where /proc is missing."""
    path = Path("/proc/sys/kernel/random/boot_id")
    try:
        return path.read_text().strip()
    except OSError as error:
        raise InputError(NoProc(str(path), str(error.strerror))) from None


def namespace() -> str:
    """Where this process' number counts: in another PID namespace, such as a container's, others have it."""
    path = Path("/proc/self/ns/pid")
    try:
        return str(path.readlink())
    except OSError as error:
        raise InputError(NoProc(str(path), str(error.strerror))) from None


def me() -> str:
    """This runner, as one word. A process number alone would be used again by another process."""
    return f"{platform.node()}/{os.getuid()}/{boot_id()}/{namespace()}/{os.getpid()}/{started(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Return whether ``owner`` was a runner of this user on this machine that runs no more.

    Of another user's it can't be told where /proc hides other users' processes, and of one in another PID namespace
    not before the machine is started again.
    """
    try:
        host, user, boot, place, pid, start = owner.split("/")
    except ValueError:
        return False
    if (host, user) != (platform.node(), str(os.getuid())):
        return False
    return boot != boot_id() or (place == namespace() and started(int(pid)) != start)
