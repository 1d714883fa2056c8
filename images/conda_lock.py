"""What images/conda_libraries.py installs: its lock file, read and checked, and the line that says what is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
CHANNEL = "https://conda.anaconda.org/conda-forge"
PACKAGES = ("jemalloc", "gperftools")
PLATFORM = "linux-64"


class LibrariesError(Exception):
    """One line for the user: what is wrong, where, and the fix."""


class NoLockError(LibrariesError):
    """There is no lock yet."""


@dataclass(frozen=True)
class Package:
    """One entry of the lock."""

    name: str
    version: str
    build: str
    url: str
    sha256: str

    @property
    def file_name(self) -> str:
        return self.url.rsplit("/", 1)[1]

    def url_at(self, channel: str) -> str:
        """Where a mirror has the file: every channel has the same folders, one for each platform."""
        return "/".join([channel.rstrip("/"), *self.url.split("/")[-2:]])


@dataclass(frozen=True)
class Lock:
    channel: str
    packages: tuple[Package, ...]


def shown(path: Path) -> str:
    """``path`` as a user of the project would type it."""
    path = path.resolve()
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)


def read_lock(path: Path) -> Lock:
    """The lock file. Raises LibrariesError if it is absent, empty or not of the form that ``write_lock`` gives it."""
    missing = "run images/conda_libraries.py lock where the channel is reached, or use a variant with libraries: debian"
    if not path.is_file():
        raise NoLockError(f"{shown(path)}: there is no lock of the conda libraries: {missing}")
    try:
        document = json.loads(path.read_text())
    except ValueError as error:
        raise LibrariesError(f"{shown(path)}: not JSON ({error}): fix it, or {missing}") from None
    if not isinstance(document, dict) or not isinstance(document.get("packages"), list):
        raise LibrariesError(f"{shown(path)}: packages must be a list: fix it, or {missing}")
    if not document["packages"]:
        raise NoLockError(f"{shown(path)}: it names no packages yet: {missing}")
    packages = tuple(_entry(path, number, entry) for number, entry in enumerate(document["packages"]))
    absent = [name for name in PACKAGES if name not in {package.name for package in packages}]
    if absent:
        raise LibrariesError(f"{shown(path)}: packages has no {absent[0]}: {missing}")
    return Lock(str(document.get("channel", CHANNEL)), packages)


def _entry(path: Path, number: int, entry: Any) -> Package:
    where = f"{shown(path)}: packages[{number}]"
    url, sha256 = (str(entry.get(key, "")) if isinstance(entry, dict) else "" for key in ("url", "sha256"))
    # CHANNEL/PLATFORM/NAME-VERSION-BUILD.conda; only a name may have a '-' in it
    match = re.fullmatch(r"[a-z0-9+]+://.+/(?:linux-64|noarch)/(.+)-([^-/]+)-([^-/]+)\.(?:conda|tar\.bz2)", url)
    if match is None:
        raise LibrariesError(f"{where}.url: {url!r} is not CHANNEL/{PLATFORM}/NAME-VERSION-BUILD.conda (or .tar.bz2)")
    if re.fullmatch(r"[0-9a-f]{64}", sha256) is None:
        raise LibrariesError(f"{where}.sha256: {sha256!r} is not a SHA-256 of 64 lower-case hexadecimal digits")
    return Package(*match.groups(), url, sha256)
