"""Where profiles are: in the project where the user stands, in the user's own folders, and in the kit.

The project is the nearest folder that has a folder ``envprofiles``: the current one, or one above it. The search ends
at the top of a repository (``.git``), at the user's home, and where another file system begins.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from envkit.common import folders

# In a checkout the package has a link to its envprofiles/, and in a wheel a copy of the files.
SHIPPED = Path(__file__).resolve().parents[1] / "envprofiles"
PROFILE_FOLDER = SHIPPED.resolve()
NAME = "envprofiles"
LOCAL = "local"  # the folder in a checkout's for profiles of one machine
OTHERS_CAN_WRITE = 0o002
Kind = Literal["project", "user", "shipped"]


@dataclass(frozen=True)
class Place:
    """A folder of profiles. ``kind`` says whose it is."""

    kind: Kind
    folder: Path

    def names(self) -> list[str]:
        """Return the names of the profiles that are there, sorted."""
        return sorted(path.stem for path in self.folder.glob("*.yaml") if self.file_of(path.stem))

    def file_of(self, name: str) -> Path | None:
        """Return the file of the profile ``name``. Return None if it is missing, or a project's and not trusted."""
        path = self.folder / f"{name}.yaml"
        there = os.path.isfile(path)  # noqa: PTH113 - False in a folder that may not be read
        return path if there and (self.kind != "project" or is_trusted(path)) else None


def places(folder: Path | None = None) -> list[Place]:
    """Return the places in the order in which names are looked up; with ``folder`` only that one, as the shipped."""
    if folder is not None:
        return [Place("user", folder / LOCAL), Place("shipped", folder)]
    searched = [Place("user", folder) for folder in dict.fromkeys((local_folder(), *_configured()))]
    project = project_folder()
    if project is not None and is_trusted(project):
        searched.insert(0, Place("project", project))
    return [*searched, Place("shipped", PROFILE_FOLDER)]


def local_folder(folder: Path = PROFILE_FOLDER) -> Path:
    """Return the folder of the profiles that were tuned on this machine, which belongs to ``folder``.

    A kit that pip installed keeps them in the user's configuration folder (XDG Base Directory Specification), because
    an upgrade replaces the folder of the shipped ones.
    """
    if folder == PROFILE_FOLDER and not SHIPPED.is_symlink() and (configured := _configured()):
        return configured[0]
    return folder / LOCAL


def project_folder() -> Path | None:
    """Return the folder ``envprofiles`` of the project where the user stands, unless it is the kit's own."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return None
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - without a home it stays as it is
    for folder in (here, *here.parents):
        if (folder / NAME).is_dir():
            profiles = folder / NAME
            return None if profiles.resolve() == PROFILE_FOLDER else profiles
        if (folder / ".git").exists() or folder == home or os.path.ismount(folder):
            return None
    return None


def is_trusted(path: Path) -> bool:
    """Return whether only this user, root, or the group of a folder or file can have written it."""
    about = path.stat()
    return about.st_uid in (os.geteuid(), 0) and not about.st_mode & OTHERS_CAN_WRITE


def untrusted(name: str | None = None) -> list[Path]:
    """Return the project's folder if it is not trusted, or else its files that are not.

    With ``name`` look only for the file of that profile.
    """
    project = project_folder()
    if project is None:
        return []
    files = sorted(project.glob("*.yaml")) if name is None else [project / f"{name}.yaml"]
    there = [path for path in files if os.path.isfile(path)]  # noqa: PTH113 - False in a folder that may not be read
    if not is_trusted(project):
        return [project] if there or name is None else []
    return [path for path in there if not is_trusted(path)]


def _configured() -> list[Path]:
    with contextlib.suppress(RuntimeError):  # no home
        return [folders.configuration() / "profiles"]
    return []
