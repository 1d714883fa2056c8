"""A folder for the time of a process, which only this user can enter; what killed processes left is removed by others.

A process locks its folder as long as it lives. Its number would say nothing in a container, which may have the
temporary folder of others. Whoever makes a folder removes all of this user's that nobody has locked, whatever they were
for. Another user may put anything into the temporary folder under such a name: it is left alone. No link is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def folder(name: str, inside: Path | None = None) -> Iterator[Path]:
    """Make a new folder that begins with ``name``, which is gone at the end, and remove what killed processes left.

    It is ``inside`` another than the temporary one. Raise OSError if it can't be made.
    """
    place = inside or Path(tempfile.gettempdir())
    _sweep(place)
    made, descriptor = _make(f"{name}-{_ours()}-", place)
    try:
        yield made
    finally:
        _remove(made, descriptor)
        os.close(descriptor)


def remove(path: Path) -> bool:
    """Remove a folder with all that is in it, and return whether it is gone.

    Nothing outside of it is touched: no link is followed, and a folder below which something is mounted stays. A file
    of another user may stay, too.
    """
    with contextlib.suppress(OSError):
        descriptor = _open(path)
        try:
            _remove(path, descriptor)
        finally:
            os.close(descriptor)
    return not os.path.lexists(path)


def temporary() -> str:
    """Return the temporary folder."""
    return tempfile.gettempdir()


def _ours() -> str:
    """Return what the names of this user's folders have: other nodes may share the temporary folder."""
    return f"{os.getuid()}-{platform.node()}"


def _sweep(place: Path) -> None:
    """Remove this user's folders in ``place`` that no living process has locked."""
    ours = re.compile(rf"envkit-[a-z]+-{re.escape(_ours())}-[0-9a-z_]+")
    with contextlib.suppress(OSError):
        for name in filter(ours.fullmatch, os.listdir(place)):  # noqa: PTH208 - names only, of thousands
            with contextlib.suppress(OSError):
                descriptor = _open(place / name)
                try:
                    if os.fstat(descriptor).st_uid == os.geteuid():
                        _lock(descriptor)
                        _remove(place / name, descriptor)
                finally:
                    os.close(descriptor)


def _make(prefix: str, place: Path) -> tuple[Path, int]:
    """Return a new folder and the descriptor that holds its lock.

    Another process of this user's may find it before it is locked, and remove it: then there is a next one.
    """
    while True:
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        with contextlib.suppress(FileNotFoundError):
            descriptor = _open(made)
            if _is_held(made, descriptor):
                return made, descriptor
            os.close(descriptor)


def _is_held(path: Path, descriptor: int) -> bool:
    """Lock the folder, and return whether it is still there. Nobody removes one that the file system can't lock."""
    try:
        _lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return _is_at(path, descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _lock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove(path: Path, descriptor: int) -> None:
    """Remove the open folder at ``path``, as far as possible."""
    if _has_mounts(path):
        return
    with contextlib.suppress(OSError, RecursionError):
        _empty(descriptor)
        if _is_at(path, descriptor):
            path.rmdir()


def _empty(folder: int) -> None:
    """Remove what is in an open folder. All of it is named from there, so that no link can lead elsewhere."""
    with contextlib.suppress(OSError):
        os.fchmod(folder, stat.S_IRWXU)
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        with contextlib.suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=folder)
                continue
            inner = _open_inner(name, folder)
            try:
                _empty(inner)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder)


def _open_inner(name: str, folder: int) -> int:
    """Open a folder in an open folder, whatever its mode. Raise OSError if it was replaced."""
    inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        itself = f"/proc/self/fd/{inner}"  # the open folder: its name may have become a link meanwhile
        with contextlib.suppress(OSError):
            os.chmod(itself, stat.S_IRWXU)  # noqa: PTH101
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inner)
    finally:
        os.close(inner)


def _has_mounts(path: Path) -> bool:
    """Return whether something is mounted below ``path`` (proc_pid_mountinfo(5))."""
    below = f"{os.path.realpath(path)}/"
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    points = (re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split()[4]) for line in lines)
    return any(f"{point}/".startswith(below) for point in points)
