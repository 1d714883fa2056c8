"""Tell whether nobody but this user and root can have written a file, as ssh asks of its own (``StrictModes``).

A file that names a program is as good as a program. So it must belong to this user or root. Others must be able neither
to write it, nor to put another one in its place. The check allows what only looks dangerous:

- write permission of a group that has this user alone, as distributions make one for each user (umask 002);
- a folder like ``/tmp``, which others can write to, but where only its owner can remove or rename a file (sticky);
- another owner where this process is root in a container: bind mounts show the number of the user who started it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.files import reason
from envkit.common.messages import FolderOpen, OfAnother, Unreadable, WritableFile

# Docker and Podman put these files into each container.
CONTAINER = (Path("/.dockerenv"), Path("/run/.containerenv"))


def require_own(path: Path) -> None:
    """Raise InputError if another user can have written the file, or can replace it, or if it is gone."""
    try:
        _require_own(path)
    except OSError as error:
        raise InputError(Unreadable(str(path), reason(error))) from None


def _require_own(path: Path) -> None:
    status = path.stat()
    if not _may_own(status.st_uid):
        raise InputError(OfAnother(str(path), _name(status.st_uid)))
    if _open_to_others(status):
        raise InputError(WritableFile(str(path), ("chmod", "go-w", str(path))))
    real = path.resolve()
    owner = real.parent.stat().st_uid  # the command runs there, beside files of whoever owns it
    if not _may_own(owner):
        raise InputError(OfAnother(str(real.parent), _name(owner)))
    for place in (path, *path.absolute().parents):  # the owner of a link can have it lead elsewhere at any time
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode) and not _may_own(about.st_uid):
            raise InputError(OfAnother(str(place), _name(about.st_uid)))
    # a link can be replaced in its own folder, too
    for folder in dict.fromkeys((*path.absolute().parents, *real.parents)):
        about = folder.stat()
        if _open_to_others(about) and not about.st_mode & stat.S_ISVTX:
            raise InputError(FolderOpen(str(path), str(folder), ("chmod", "go-w", str(folder))))


def _may_own(owner: int) -> bool:
    """Return whether files of ``owner`` are as good as this user's own."""
    if owner in (0, os.geteuid()):
        return True
    if os.geteuid() != 0:
        return False
    return str(owner) == os.environ.get("SUDO_UID") or any(mark.exists() for mark in CONTAINER)


def _open_to_others(about: os.stat_result) -> bool:
    """Return whether the mode lets somebody else than the owner and root write."""
    if about.st_mode & stat.S_IWOTH:
        return True
    return bool(about.st_mode & stat.S_IWGRP) and not _is_private(about.st_gid, about.st_uid)


def _is_private(group: int, owner: int) -> bool:
    """Return whether a group has its ``owner`` alone: it has the same name, and nobody else is known to be in it.

    The name matters where a directory service does not list its users: all of a site may be in the group ``users``.
    """
    try:
        name, members = _name(owner), set(grp.getgrgid(group).gr_mem)
    except KeyError:  # a container knows no names; group and user of one number are that user's
        return group == owner
    if grp.getgrgid(group).gr_name != name or not members <= {name}:
        return False
    return group == 0 or all(user.pw_uid == owner for user in pwd.getpwall() if user.pw_gid == group)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
