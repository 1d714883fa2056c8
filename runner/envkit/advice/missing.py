"""Say what is not installed: all libraries that profiles preload and the machine lacks, and one command to get them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.common.folders import short
from envkit.messages import Message
from envkit.profiles.inspection import Inspection
from envkit.profiles.messages import LibraryMissing
from envkit.worker.libraries import LIBRARIES


@dataclass(frozen=True)
class Missing:
    """Libraries that are not installed, the profiles that preload them, and commands that install them.

    A command is empty if none of the libraries can be got so; ``only_root`` are the libraries that take root.
    """

    profiles: tuple[str, ...]
    libraries: tuple[str, ...]
    as_root: str
    without_root: str
    only_root: tuple[str, ...]

    @property
    def without_commands(self) -> Missing:
        """Return the same without commands: an image has its libraries from its recipe."""
        return replace(self, as_root="", without_root="", only_root=())


def missing(left_out: Mapping[str, Message], inspection: Inspection) -> Missing | None:
    """Return what the profiles lack that were ``left_out`` for a library; None if they lack none."""
    lacking = {profile: why.library for profile, why in left_out.items() if isinstance(why, LibraryMissing)}
    libraries = tuple(name for name in LIBRARIES if name in lacking.values())
    if not libraries:
        return None
    python = inspection["python"]
    pip = (str(short(Path(python["executable"]))), "-m", "pip", "install")
    loaded = [package for name in libraries for package in LIBRARIES[name].loads.values()]
    not_in_debian = [name for name in libraries if "debian" not in LIBRARIES[name].packages]
    return Missing(
        profiles=tuple(lacking),
        libraries=libraries,
        as_root=_all_of(
            _command("apt-get", "install", packages=[*_packages(libraries, "debian"), *loaded]),
            _command(*pip, packages=_packages(not_in_debian, "pypi")),
        ),
        without_root=_all_of(
            _command(*pip, packages=_packages(libraries, "pypi")),
            _conda(_packages(libraries, "conda"), python["prefix"]),
        ),
        only_root=tuple(name for name in libraries if not LIBRARIES[name].packages.keys() & {"pypi", "conda"}),
    )


def _packages(libraries: Iterable[str], source: str) -> list[str]:
    return [LIBRARIES[name].packages[source] for name in libraries if source in LIBRARIES[name].packages]


def _command(*words: str, packages: list[str]) -> str:
    """Return the command for ``packages``, or "" without packages."""
    return shlex.join([*words, *packages]) if packages else ""


def _conda(packages: list[str], prefix: str) -> str:
    """Return the command that puts conda-forge's ``packages`` where the Python at ``prefix`` has its libraries.

    These folders are the prefix, if that is an environment of conda, and ``conda`` in it (worker/image.py).
    """
    if not packages:
        return ""
    if (Path(prefix) / "conda-meta").is_dir():
        into = ("install", "-p", prefix)
    else:
        into = ("create", "-p", str(Path(prefix) / "conda"))
    return shlex.join(["conda", *into, "-c", "conda-forge", *packages])


def _all_of(*commands: str) -> str:
    return " && ".join(command for command in commands if command)
