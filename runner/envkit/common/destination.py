"""Find the place of a file to write, and follow no link that somebody else may have planted on the way.

A user who can write to a folder can put a link there, under the name that another user is going to write to. Whoever
follows it overwrites a file of their own. So these links are followed, and no others:

- links of this user and of root,
- links of the owner of the folder that they are in, unless it is sticky. In the place of the file itself that folder
  must be writable for its owner alone, and this user not root.

This is the rule of the kernel's fs.protected_symlinks, for all folders that others can write to, and whatever that
setting is. Each folder is opened from the one before it, so that nobody can exchange one meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.file_messages import ForeignLink, ForeignPlace

MOST_LINKS = 40  # as many as the kernel follows
OTHERS_CAN_WRITE = 0o022
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
HERE = ("", ".")
OWN_DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True)
class Destination:
    """An open folder, and the name of a file in it. ``opens`` says that the name is a descriptor's, in /proc."""

    folder: int
    name: str
    opens: bool = False

    def about(self) -> os.stat_result | None:
        """Return what stands in the place; None if nothing does. Raise OSError."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=self.opens)
        except FileNotFoundError:
            return None


@contextlib.contextmanager
def opened(path: Path, make: bool = False) -> Iterator[Destination]:
    """Open the folder in which ``path`` is to be written, for as long as the context lasts.

    ``make`` makes folders on the way that are missing. Raise OSError, and InputError for a link that is not followed.
    """
    walk = _Walk(path, make)
    try:
        yield walk.to_end()
    finally:
        os.close(walk.folder)


class _Walk:
    """One way from the root, or from the current folder, to the folder of a file. ``folder`` is open all the time."""

    def __init__(self, path: Path, make: bool) -> None:
        self._path, self._make = path, make
        self._left = os.fspath(path).split("/")
        self._links = 0
        self.folder = os.open("/" if path.is_absolute() else ".", FOLDER)

    def to_end(self) -> Destination:
        while self._left:
            name = self._left.pop(0)
            if name in HERE:
                continue
            last = all(part in HERE for part in self._left)
            if name == ".." or not last:
                self._enter(name)
            elif self._follow(name, last=True):
                continue
            else:
                return Destination(self.folder, name, opens=self._in_proc(name))
        return Destination(self.folder, ".")

    def _enter(self, name: str) -> None:
        try:
            inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=self.folder)
        except FileNotFoundError:
            if not self._make:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folder)
            inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=self.folder)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP) or not self._follow(name, last=False):
                raise
            return
        self._exchange(inner)

    def _follow(self, name: str, last: bool) -> bool:
        """Put where a link leads in its place, and return True. Return False for what is no link, or not there."""
        try:
            link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        except FileNotFoundError:
            return False
        try:
            about = os.fstat(link)
            if not stat.S_ISLNK(about.st_mode) or (last and self._in_proc(name)):
                return False
            if not _trusted(about, os.fstat(self.folder), last):
                raise InputError(ForeignLink(str(self._path), name, about.st_uid))
            target = os.readlink("", dir_fd=link)
        finally:
            os.close(link)
        self._links += 1
        if self._links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self._left[:0] = target.split("/")
        if target.startswith("/"):
            self._exchange(os.open("/", FOLDER))
        return True

    def _in_proc(self, name: str) -> bool:
        """Return whether the name is a link as /proc/self/fd/1, whose text need not be the name of a file."""
        try:
            return name.isdecimal() and os.fstat(self.folder).st_dev == OWN_DESCRIPTORS.stat().st_dev
        except FileNotFoundError:
            return False

    def _exchange(self, folder: int) -> None:
        os.close(self.folder)
        self.folder = folder


def _trusted(link: os.stat_result, folder: os.stat_result, last: bool) -> bool:
    me = os.geteuid()
    if link.st_uid in (me, 0):
        return True
    shared = folder.st_mode & OTHERS_CAN_WRITE
    if link.st_uid != folder.st_uid or (shared and folder.st_mode & stat.S_ISVTX):
        return False
    return not last or (me != 0 and not shared)


def require_own(about: os.stat_result, place: Destination, path: Path) -> None:
    """Raise InputError for what another user made in a sticky folder that others can write to.

    Its maker could have it open, and change what is written to it, or read it.
    """
    folder = os.fstat(place.folder)
    sticky = folder.st_mode & stat.S_ISVTX and folder.st_mode & OTHERS_CAN_WRITE
    if sticky and about.st_uid not in (os.geteuid(), 0):
        raise InputError(ForeignPlace(str(path), about.st_uid))
