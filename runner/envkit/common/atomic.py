"""Write a file so that it is there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.messages import Unwritable
from envkit.common.output import write_to_device


def write(path: Path, content: bytes, private: bool = False) -> None:
    """Put ``content`` in the place of what ``path`` holds. Raises InputError, with the old file as it was.

    A link stays one: the file that it leads to is written. What is no file, a pipe or a device, is written to.
    A ``private`` file can be read by this user alone; another one by whom the umask lets.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            write_to_device(target, content)
        else:
            _replace(target, content, private)
    except OSError as error:
        kept = path.name if path.is_file() else None
        raise InputError(Unwritable(str(path), str(error.strerror), kept)) from None


def require(path: Path) -> None:
    """Raise InputError where ``write`` would find no place: asked before time is spent on what is to be written."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        reason = errno.EISDIR
    elif not target.parent.is_dir():
        reason = errno.ENOENT
    elif not os.access(target.parent, os.W_OK):
        reason = errno.EACCES
    else:
        return
    raise InputError(Unwritable(str(path), os.strerror(reason)))


def make_private(folder: Path) -> None:
    """Make a folder that only this user can open. Leave an existing one as it is. Raise OSError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(0o700)  # a umask may take the user's own rights away


def _replace(target: Path, content: bytes, private: bool) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    mode = 0o600 if private else mode
    # in the same folder, and so on the same file system: it is renamed at once
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
