"""One measurement at a time on a machine: two would spoil each other's numbers."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.running_messages import Locked, LockUnopenable, NoLocks, NotALock


@contextlib.contextmanager
def machine_lock() -> Iterator[None]:
    """Hold the machine for this process.

    Raises InputError, naming the process, while another measurement runs. Only those that have the same TMPDIR see each
    other, which several machines may share.
    """
    path = Path(tempfile.gettempdir()) / f"envkit-{platform.node()}.lock"
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW  # the folder is everybody's: a link may lead anywhere
    try:
        # An existing file is opened without O_CREAT: in a sticky folder the kernel refuses that for another user's
        # file (sysctl fs.protected_regular).
        descriptor = os.open(path, flags) if os.path.lexists(path) else os.open(path, flags | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(LockUnopenable(str(path), str(error.strerror))) from None
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise InputError(NotALock(str(path)))
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, 0o666)  # other users measure here too, whatever this one's umask
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or None
        raise InputError(Locked(holder)) from None
    except OSError as error:  # a file system without locks
        raise InputError(NoLocks(str(path), str(error.strerror))) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
