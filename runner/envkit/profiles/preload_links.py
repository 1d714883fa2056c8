"""Names that LD_PRELOAD can hold, for libraries whose folder is called otherwise: a project may be in any."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path

from envkit.common import folders
from envkit.profiles.inspection import Inspection, LibraryFile

# Where the loader splits LD_PRELOAD (ld.so(8)), and what else ends a word there.
ENDS_A_NAME = re.compile(r"[\s:]")
OTHERS_CAN_WRITE = 0o022


def linked(inspection: Inspection) -> Inspection:
    """The inspection of this machine itself, with libraries that are found through a link, if need be.

    Links are in the user's cache, and are to folders: a library may look for others beside itself. A library stays as
    it was where there can be none: where the cache's name is no better, or somebody else could change the links.
    """
    libraries: dict[str, LibraryFile] = {
        name: {**file, "path": _named(file["path"])} for name, file in inspection["libraries"].items()
    }
    return {**inspection, "libraries": libraries}


def _named(path: str) -> str:
    if ENDS_A_NAME.search(path) is None:
        return path
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: no home
        links = folders.cache() / "preload"
        links.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = links.stat()
        if about.st_uid == os.geteuid() and not about.st_mode & OTHERS_CAN_WRITE:
            folder, name = os.path.split(path)
            link = _link(links / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16], Path(folder))
            linked_path = str(link / name)
            return path if ENDS_A_NAME.search(linked_path) else linked_path
    return path


def _link(link: Path, folder: Path) -> Path:
    """Have ``link`` lead to ``folder``. At no time is it missing or half made, as others may be using it."""
    with contextlib.suppress(OSError):
        if link.readlink() == folder:
            return link
    unfinished = link.with_name(f"{link.name}.{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    unfinished.symlink_to(folder)
    unfinished.replace(link)
    return link
