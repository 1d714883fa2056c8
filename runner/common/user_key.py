"""The secret key of this user: 32 random bytes in their configuration folder (XDG Base Directory Specification).

Whoever can read the key can seal a record in this user's name, so it is never written anywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import stat
from pathlib import Path

from runner.common.errors import InputError

LENGTH = 32
NAME = "record.key"


class NoKey(Exception):
    """This user has no key here, and none can be made. The message says why, without a full stop."""


def path() -> Path:
    """Where the key is, which may not be there yet. Raises NoKey for a user without a home."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():  # the specification says to ignore it then
        try:
            base = Path.home() / ".config"
        except RuntimeError:
            raise NoKey("this user has no home folder; set XDG_CONFIG_HOME") from None
    return base / "envkit" / NAME


def find() -> bytes | None:
    """The key, or None where none was made yet, or there is no place for one.

    Raises InputError for one that others may know.
    """
    try:
        place = path()
        _require_place(place)
        return _read(place)
    except NoKey:
        return None


def find_or_make() -> bytes:
    """The key, which is made on first use. Raises NoKey where there is no place for one, InputError as ``find`` does.

    Of several processes that make one at once all get the same: a link is made for one of them alone, and only when
    the whole key is on disk.
    """
    place = path()
    _require_place(place)
    found = _read(place)
    if found is not None:
        return found
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(place)
    except OSError as error:
        raise NoKey(f"{place}: can't be made: {error.strerror}") from None
    made = _read(place)
    if made is None:
        raise NoKey(f"{place}: was removed while it was made")
    return made


def _require_place(place: Path) -> None:
    """Raise NoKey where the folder for the key belongs to somebody else (as with sudo), InputError where others write.

    Others who can write there could put a key of theirs into its place.
    """
    folder = next(one for one in place.parents if one.exists())
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise NoKey(f"{folder} belongs to another user; set XDG_CONFIG_HOME to a folder of your own")
    if folder == place.parent and stat.S_IMODE(found.st_mode) & 0o022:
        raise InputError(f"{folder}: others can write there, where your key is: chmod go-w {shlex.quote(str(folder))}")


def _read(place: Path) -> bytes | None:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _bad(place, "is a link") from None
        raise _bad(place, f"can't be read ({error.strerror})") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _bad(place, "is no file")
        if found.st_uid != os.geteuid():
            raise _bad(place, "belongs to another user")
        if (mode := stat.S_IMODE(found.st_mode)) & 0o077:
            raise _bad(place, f"is open to others (its mode is {mode:04o}), who may have read it")
        content = os.read(descriptor, LENGTH + 1)
    finally:
        os.close(descriptor)
    if len(content) != LENGTH:
        raise _bad(place, f"does not hold the {LENGTH} bytes of a key")
    return content


def _bad(place: Path, why: str) -> InputError:
    """The mend is a new key: one that others know proves nothing."""
    return InputError(
        f"{place}: {why}, so it can't be your key; remove it, and a new one is made: rm {shlex.quote(str(place))}"
    )


def _make(place: Path) -> None:
    """Put a new key into place, or leave the one that another process has put there meanwhile. Raises OSError."""
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
