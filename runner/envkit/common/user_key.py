"""The secret key of this user: 32 random bytes in their configuration folder.

Anybody who can read the key can seal a record in this user's name, so it is never written anywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from envkit.common import folders
from envkit.common.errors import InputError
from envkit.common.key_messages import (
    IS_LINK,
    NO_FILE,
    OF_OTHER,
    OPEN,
    OTHER_LENGTH,
    UNREADABLE,
    BadKey,
    ForeignFolder,
    KeyRemoved,
    NoHome,
    WritableByOthers,
)
from envkit.common.running_messages import NotMade
from envkit.messages import MessageError

LENGTH = 32
NAME = "record.key"


class NoKey(MessageError):
    """Raised if this user has no key, and none can be made."""


def path() -> Path:
    """Return the path of the key, which may not exist yet. Raise NoKey if the user has no home."""
    try:
        return folders.configuration() / NAME
    except RuntimeError:
        raise NoKey(NoHome()) from None


def find() -> bytes | None:
    """Return the key, or None if absent. Raise InputError if others may know it."""
    try:
        place = path()
        _require_place(place)
        return _read(place)
    except NoKey:
        return None


def find_or_make() -> bytes:
    """Return the key, and make it on first use. Raise NoKey if there is no place for it, InputError as ``find`` does.

    Several processes that make one at once all get the same key: only one of them can make the link, and it does so
    when the whole key is on disk.
    """
    place = path()
    _require_place(place)
    key = _read(place)
    if key is not None:
        return key
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(place)
    except OSError as error:
        raise NoKey(NotMade(str(place), str(error.strerror))) from None
    made = _read(place)
    if made is None:
        raise NoKey(KeyRemoved(str(place)))
    return made


def _require_place(place: Path) -> None:
    """Raise NoKey if the folder for the key is another user's (as with sudo), InputError if others can write there.

    They could put a key of theirs into its place.
    """
    folder = next(parent for parent in place.parents if parent.exists())
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise NoKey(ForeignFolder(str(folder)))
    if folder == place.parent and stat.S_IMODE(status.st_mode) & 0o022:
        raise InputError(WritableByOthers(str(folder), ("chmod", "go-w", str(folder))))


def _read(place: Path) -> bytes | None:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _bad(place, IS_LINK) from None
        raise _bad(place, UNREADABLE, str(error.strerror)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _bad(place, NO_FILE)
        if status.st_uid != os.geteuid():
            raise _bad(place, OF_OTHER)
        if (mode := stat.S_IMODE(status.st_mode)) & 0o077:
            raise _bad(place, OPEN, f"{mode:04o}")
        content = os.read(descriptor, LENGTH + 1)
    finally:
        os.close(descriptor)
    if len(content) != LENGTH:
        raise _bad(place, OTHER_LENGTH)
    return content


def _bad(place: Path, fault: str, detail: str | None = None) -> InputError:
    return InputError(BadKey(str(place), fault, ("rm", str(place)), detail))


def _make(place: Path) -> None:
    """Put a new key into place, unless another process was faster. Raise OSError."""
    temporary = place.with_name(f".{NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            os.fchmod(descriptor, 0o600)  # whatever the umask
            os.write(descriptor, secrets.token_bytes(LENGTH))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, place)
    finally:
        temporary.unlink(missing_ok=True)
