"""Write a file so that it is there whole or not at all. All modules write files by this one.

``envkit.common.destination`` says which links are followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from envkit.common import destination, files
from envkit.common.destination import Destination
from envkit.common.errors import InputError
from envkit.common.messages import Unwritable
from envkit.common.output import write_to_device

PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
LONGEST_PART = 200  # of a name in the temporary one: names have at most 255 bytes
# What a new private file keeps of the old one's permissions: its owner can let a group read it.
KEPT_OF_PRIVATE = 0o040


def write(path: Path, content: bytes, private: bool = False) -> None:
    """Put ``content`` instead of what ``path`` holds. Raises InputError, with the old file as it was.

    A link of the user's stays one: the file that it leads to is written. A pipe or a device is written to. A
    ``private`` file can be read by this user alone, and by its group if the user let it read the file that is
    replaced. The umask decides who can read another file.
    """
    try:
        put(path, content, PRIVATE if private else None)
    except OSError as error:
        kept = path.name if path.is_file() else None
        raise InputError(Unwritable(str(path), str(error.strerror), kept)) from None


def put(path: Path, content: bytes, mode: int | None = None) -> None:
    """Do as ``write``, and raise OSError. ``mode`` is what is not PRIVATE and not as the umask has it."""
    with destination.opened(path) as place:
        about = place.about()
        if about is None or (stat.S_ISREG(about.st_mode) and not place.opens):
            _replace(place, content, _mode(about, mode))
        elif stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        else:
            destination.require_own(about, place, path)
            _stream(place, path, content)


def require(path: Path) -> None:
    """Raise InputError where ``write`` would find no place: asked before time is spent on what is to be written."""
    try:
        with destination.opened(path) as place:
            about = place.about()
            if about is not None and stat.S_ISDIR(about.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if about is None or stat.S_ISREG(about.st_mode):
                if not os.access(".", os.W_OK, dir_fd=place.folder):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            else:
                destination.require_own(about, place, path)
    except OSError as error:
        raise InputError(Unwritable(str(path), str(error.strerror))) from None


def make_private(folder: Path) -> None:
    """Make a folder that only this user can open, with its parents. Leave an existing one as it is. Raise OSError.

    Raise InputError if another user was first to make it in a sticky folder.
    """
    make_folder(folder, PRIVATE_FOLDER)


def make_folder(folder: Path, mode: int | None = None) -> None:
    """Make a folder with its parents, with this ``mode`` or as the umask has it. Raise as ``make_private`` does."""
    with destination.opened(folder, make=True) as place:
        try:
            os.mkdir(place.name, 0o777 if mode is None else mode, dir_fd=place.folder)
        except FileExistsError:
            about = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
            if not stat.S_ISDIR(about.st_mode):
                raise
            if place.name != ".":
                destination.require_own(about, place, folder)
            return
        if mode is not None:
            _set_mode(place, mode)


def open_file(path: Path, flags: int) -> int:
    """Open a file that is written piece by piece, and return its descriptor. With O_CREAT a new one is private.

    Raise OSError, and InputError for a link or a file that another user planted.
    """
    with destination.opened(path) as place:
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(place.name, flags, 0o600, dir_fd=place.folder)
        try:
            about = os.fstat(descriptor)
            files.require_regular(about)
            destination.require_own(about, place, path)
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


def _replace(place: Destination, content: bytes, mode: int) -> None:
    # in the same folder, and so on the same file system: it is renamed at once
    name = f".{os.fsdecode(os.fsencode(place.name)[:LONGEST_PART])}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=place.folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.replace(name, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=place.folder)
        raise


def _mode(old: os.stat_result | None, wanted: int | None) -> int:
    """Return the permissions of a new file. It keeps those of the old one if this user made that."""
    kept = stat.S_IMODE(old.st_mode) & 0o777 if old is not None and old.st_uid == os.geteuid() else None
    if wanted is not None:
        return wanted | ((kept or 0) & KEPT_OF_PRIVATE)
    return 0o666 & ~_umask() if kept is None else kept


def _stream(place: Destination, path: Path, content: bytes) -> None:
    """Write to a pipe, a device or one of the process's own descriptors, as /dev/stdout is."""
    if place.opens and os.path.samestat(os.fstat(place.folder), destination.OWN_DESCRIPTORS.stat()):
        descriptor = os.dup(int(place.name))
    else:
        flags = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC | (os.O_APPEND if place.opens else os.O_NOFOLLOW)
        descriptor = os.open(place.name, flags, dir_fd=place.folder)
    with os.fdopen(descriptor, "wb") as file:
        destination.require_own(os.fstat(descriptor), place, path)  # it may have been exchanged
        write_to_device(file, content)


def _set_mode(place: Destination, mode: int) -> None:
    """Give a new folder its permissions: a umask may take the user's own rights away."""
    descriptor = os.open(place.name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.folder)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o777 != mode:
            (destination.OWN_DESCRIPTORS / str(descriptor)).chmod(mode)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
