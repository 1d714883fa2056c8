"""A folder for the time of a process, in the temporary folder; one that a killed process left is removed by the next.

A process has its folder locked as long as it lives: the number of a process would say nothing in a container, which may
have the temporary folder of others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def folder(name: str, inside: Path | None = None) -> Iterator[Path]:
    """A new folder that begins with ``name``, gone at the end; what earlier ones of this user's left here goes too.

    It is ``inside`` another than the temporary one.
    """
    prefix = f"{name}-{os.getuid()}-{platform.node()}-"  # other nodes may share the temporary folder
    for left in (inside or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), _locked(left):
            remove(left)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
    try:
        with contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):  # some network file systems lock no folder: nobody removes it then
                held.enter_context(_locked(made))
            yield made
    finally:
        remove(made)


def remove(path: Path) -> bool:
    """Remove a folder with all that is in it, and return whether it is gone.

    Nothing outside of it is touched: no link is followed, and a folder below which something is mounted stays. A file
    of another user may stay, too.
    """
    if _has_mounts(path):
        return False
    for parent, folders, _ in os.walk(path):
        for name in folders:  # one that can't be written to would keep what is in it
            inner = Path(parent, name)
            with contextlib.suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(stat.S_IMODE(inner.stat().st_mode) | stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def _has_mounts(path: Path) -> bool:
    """Return whether something is mounted below ``path`` (proc_pid_mountinfo(5))."""
    below = f"{os.path.realpath(path)}/"
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    points = (re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split()[4]) for line in lines)
    return any(f"{point}/".startswith(below) for point in points)


def temporary() -> str:
    """Return the temporary folder."""
    return tempfile.gettempdir()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Raises OSError where it can't be locked, or is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
