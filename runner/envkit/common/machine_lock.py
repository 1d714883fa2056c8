"""One measurement at a time on a machine: two would spoil each other's numbers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.running_messages import NO_LOCK, Locked, NoLocks, UnusableLock


@contextlib.contextmanager
def machine_lock() -> Iterator[None]:
    """Hold the machine for this process.

    Raises InputError, naming the process, while another measurement runs. Only those that have the same TMPDIR see each
    other, which several machines may share.
    """
    path = Path(tempfile.gettempdir()) / f"envkit-{platform.node()}.lock"
    # the folder is everybody's: a link may lead anywhere, and a FIFO or a device may have the caller wait
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        # An existing file is opened without O_CREAT: in a sticky folder the kernel refuses that for another user's
        # file (sysctl fs.protected_regular).
        descriptor = os.open(path, flags) if os.path.lexists(path) else os.open(path, flags | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(UnusableLock(str(path), str(error.strerror))) from None
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise InputError(UnusableLock(str(path), NO_LOCK))
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, 0o666)  # other users measure here too, whatever this one's umask
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(_locked(descriptor, status)) from None
    except OSError as error:  # a file system without locks
        raise InputError(NoLocks(str(path), str(error.strerror))) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)


def _locked(descriptor: int, lock: os.stat_result) -> Locked:
    """Return who holds the lock: by the kernel's own list or, where that does not show it, by what the file says."""
    process = _holder(lock)
    if process is None:
        content = os.pread(descriptor, 20, 0).strip()
        return Locked(content.decode() if content.isdigit() else None)  # anybody can write there
    try:
        user = Path("/proc", process).stat().st_uid
    except OSError:  # which hides other users' processes
        return Locked(process)
    return Locked(process, None if user == os.getuid() else _name(user))


def _holder(lock: os.stat_result) -> str | None:
    """Return the number of the process that holds the file locked, as proc_locks(5) tells it."""
    place = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place and words[4].isdigit() and words[4] != "0":
                return words[4]
    return None


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
