"""Say what is not installed: all libraries that profiles preload and the machine lacks, and one command to get them."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.common.folders import short
from envkit.messages import Message
from envkit.profiles.inspection import Inspection
from envkit.profiles.messages import LibraryMissing
from envkit.worker.libraries import LIBRARIES

# How root installs packages, by the source of packages in LIBRARIES. EPEL is a repository beside those of the system.
INSTALL = {
    "debian": ("apt-get", "install"),
    "fedora": ("dnf", "install"),
    "epel": ("dnf", "install"),
    "opensuse": ("zypper", "install"),
    "arch": ("pacman", "-S"),
}
# What is installed before them.
FIRST = {"epel": ["epel-release"]}
# Distributions built from RHEL that have the package epel-release.
WITH_EPEL = ("almalinux", "centos", "rocky")
# The first release of Debian, and of Ubuntu, whose packages are those of "debian 13".
DEBIAN_13 = {"debian": [13], "ubuntu": [25, 10]}


@dataclass(frozen=True)
class Missing:
    """Libraries that are not installed, the profiles that preload them, and commands that install them.

    A command is empty if none of the libraries can be got so, or if nothing is known of the system's packages.
    ``not_as_root`` and ``only_root`` are the libraries that ``as_root`` and ``without_root`` do not install.
    """

    profiles: tuple[str, ...]
    libraries: tuple[str, ...]
    as_root: str
    not_as_root: tuple[str, ...]
    without_root: str
    only_root: tuple[str, ...]

    @property
    def without_commands(self) -> Missing:
        """Return the same without commands: an image has its libraries from its recipe."""
        return replace(self, as_root="", not_as_root=(), without_root="", only_root=())


def os_release() -> dict[str, str]:
    """Return the fields of this machine's /etc/os-release (os-release(5)), or an empty dict without the file."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def sources(release: Mapping[str, str]) -> tuple[str, ...]:
    """Return the sources of a distribution's packages in LIBRARIES, the first choice first; none if it is unknown.

    Derivatives of Fedora have other repositories, so that ID_LIKE counts for the others alone.
    """
    name, alike = release.get("ID", ""), release.get("ID_LIKE", "").split()
    if name in WITH_EPEL or name == "fedora":
        return ("epel" if name in WITH_EPEL else name,)
    source = next((family for family in ("debian", "opensuse", "arch") if family in (name, *alike)), None)
    version = [*map(int, re.findall(r"\d+", release.get("VERSION_ID", "")))]
    if name in DEBIAN_13 and (not version or version >= DEBIAN_13[name]):  # without a number it is yet to be released
        return ("debian 13", "debian")
    return () if source is None else (source,)


def missing(left_out: Mapping[str, Message], inspection: Inspection, release: Mapping[str, str]) -> Missing | None:
    """Return what the profiles lack that were ``left_out`` for a library; None if they lack none.

    ``release`` is the machine's ``os_release``.
    """
    lacking = {profile: why.library for profile, why in left_out.items() if isinstance(why, LibraryMissing)}
    libraries = tuple(name for name in LIBRARIES if name in lacking.values())
    if not libraries:
        return None
    python = inspection["python"]
    pip = (str(short(Path(python["executable"]))), "-m", "pip", "install")
    in_system = _in_system(libraries, sources(release))
    not_in_system = [name for name in libraries if name not in in_system]
    return Missing(
        profiles=tuple(lacking),
        libraries=libraries,
        as_root=_as_root(in_system, not_in_system, sources(release), pip),
        not_as_root=tuple(name for name in not_in_system if "pypi" not in LIBRARIES[name].packages),
        without_root=_all_of(
            _command(*pip, packages=_packages(libraries, "pypi")),
            _conda(_packages(libraries, "conda"), python["prefix"]),
        ),
        only_root=tuple(name for name in libraries if not LIBRARIES[name].packages.keys() & {"pypi", "conda"}),
    )


def _in_system(libraries: Iterable[str], system: Iterable[str]) -> dict[str, str]:
    """Return the packages of the system that bring libraries, by the names of these."""
    chosen = {
        name: next((source for source in system if source in LIBRARIES[name].packages), None) for name in libraries
    }
    packages = {name: LIBRARIES[name].packages[source] for name, source in chosen.items() if source is not None}
    return {name: package for name, package in packages.items() if package}


def _as_root(
    in_system: Mapping[str, str], not_in_system: Iterable[str], system: tuple[str, ...], pip: tuple[str, ...]
) -> str:
    """Return the command of a ``system``'s package manager, and pip's for other libraries; "" if that is unknown."""
    if not system:
        return ""
    loaded = {package for name in (*in_system, *not_in_system) for package in LIBRARIES[name].loads.values()}
    packages = [*in_system.values(), *sorted(loaded if system[-1] == "debian" else ())]
    manager, first = INSTALL[system[-1]], FIRST.get(system[-1], []) if packages else []
    return _all_of(
        _command(*manager, packages=first),
        _command(*manager, packages=packages),
        _command(*pip, packages=_packages(not_in_system, "pypi")),
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
