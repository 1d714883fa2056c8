"""Open and read files that somebody else may have written: records, baselines, submissions, profiles.

This module opens only regular files: reading a FIFO, a device or a socket could wait forever. Each file has a size
limit, so that its content fits into memory.

A path may be a symbolic link. The link's owner must be this user, root, or the owner of the target file. Links of
others are refused: this user would read, and quote, a file that the link's owner must not read. Folders on the path may
be links of any user.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from envkit.common.errors import InputError
from envkit.common.file_messages import LargerThan, LinkOfOther, NotRegular
from envkit.common.messages import Unreadable
from envkit.messages import Message, MessageError, Printed

# The most of a file that grows with what is measured: a record, a journal, a report on a fleet. A run of an hour has
# about 15 MB.
MOST_OF_A_RECORD = 256 * 2**20
# The most of another document: a baseline, a submission, what a node says of itself.
MOST_OF_A_DOCUMENT = 16 * 2**20
MOST_LINKS = 40  # as many as the kernel follows
KINDS = ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


class Refused(MessageError, OSError):
    """Raised for a file that must not be read. Callers that catch OSError give its ``reason`` to the user."""

    def __init__(self, message: Message) -> None:
        MessageError.__init__(self, message)
        self.strerror = message.code


def reason(error: OSError) -> Message:
    """Return why a file could not be opened or read."""
    return error.message if isinstance(error, MessageError) else Printed(str(error.strerror))


def open_descriptor(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file that is there, and return its descriptor. Raise OSError; no call ever waits for a FIFO."""
    place, makers = _followed(os.fspath(path))
    descriptor = os.open(place, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        about = os.fstat(descriptor)
        require_regular(about)
        strangers = makers - {0, os.geteuid(), about.st_uid}
        if strangers:
            raise Refused(LinkOfOther(min(strangers), about.st_uid))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def opened(path: Path | str, most: int | None = MOST_OF_A_RECORD) -> BinaryIO:
    """Open a regular file of at most ``most`` bytes, or of any size, for reading. Raise OSError."""
    file = os.fdopen(open_descriptor(path), "rb")
    size = os.fstat(file.fileno()).st_size
    if most is not None and size > most:
        file.close()
        raise Refused(LargerThan(size, most))
    return file


def read(path: Path | str, most: int = MOST_OF_A_DOCUMENT) -> bytes:
    """Return what a regular file of at most ``most`` bytes holds. Raise OSError."""
    with opened(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:  # it has grown meanwhile
        raise Refused(LargerThan(len(content), most))
    return content


def content(path: Path | str, most: int = MOST_OF_A_DOCUMENT, fix: str | None = None) -> bytes:
    """Return what ``read`` does. Raise InputError, whose message ends with the ``fix``."""
    try:
        return read(path, most)
    except OSError as error:
        raise InputError(Unreadable(str(path), reason(error), fix)) from None


def require_regular(about: os.stat_result) -> None:
    """Raise OSError unless ``about`` is of a regular file."""
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(about.st_mode):
        raise Refused(NotRegular(next((name for holds, name in KINDS if holds(about.st_mode)), "no file")))


def _followed(place: str) -> tuple[str, set[int]]:
    """Follow the links of ``place``. Return the target's path and the owners of the links. Raise OSError.

    No target is opened here, because opening a device can have an effect.
    """
    makers: set[int] = set()
    for _ in range(MOST_LINKS):
        descriptor = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISLNK(about.st_mode):
                require_regular(about)
                return place, makers
            makers.add(about.st_uid)
            target = os.readlink("", dir_fd=descriptor)
        finally:
            os.close(descriptor)
        place = os.path.join(os.path.dirname(place), target)  # noqa: PTH118, PTH120 - Path would drop a final slash
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def whole_lines(descriptor: int) -> int:
    """Return the size, in bytes, of an open file without a last line that has no end."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - 4096)
        line_end = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if line_end >= 0:
            return begin + line_end + 1
        end = begin
    return 0
