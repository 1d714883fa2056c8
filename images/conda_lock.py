"""What images/conda_libraries.py installs: its lock file, read and checked, and the line that says what is wrong."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from addresses import hidden, refusal
from providers import packages

PROJECT = Path(__file__).resolve().parent.parent
CHANNEL = "https://conda.anaconda.org/conda-forge"
PACKAGES = tuple(packages("conda"))
PLATFORM = "linux-64"
LOCK = PROJECT / "images/cpu/conda.lock"
LARGEST = 1 << 30  # bytes; those of allocators are a few million


class LibrariesError(Exception):
    """One line for the user: what is wrong, where, and the fix."""


@dataclass(frozen=True)
class Package:
    """One entry of the lock."""

    name: str
    version: str
    build: str
    url: str
    sha256: str
    size: int

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


def how_to_lock(path: Path, pins: Mapping[str, str]) -> str:
    """Return the command that writes the lock ``path``, as it is typed in the project's folder."""
    words = [".venv/bin/python", "images/conda_libraries.py"]
    if path.resolve() != LOCK:
        words += ["--lock", shown(path)]
    words.append("lock")
    for name, version in pins.items():
        words += ["--pin", f"{name}={version}"]
    return shlex.join(words)


def read_lock(path: Path, pins: Mapping[str, str]) -> Lock:
    """Read the lock file. Nothing is installed that it does not name.

    Raises LibrariesError, which names the command that locks, if the file is absent, empty, not of the form that
    ``lock`` writes, or has another version of a package than ``pins``.
    """
    command = how_to_lock(path, pins)
    make = f"run '{command}' where the channel is reached, check and commit the file"
    otherwise = "or use a variant with libraries: debian"
    only = "only locked packages are installed"
    if not path.is_file():
        raise LibrariesError(f"{shown(path)}: there is no lock of the conda packages, and {only}: {make}, {otherwise}")
    try:
        document = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise LibrariesError(f"{shown(path)}: not JSON ({error}): fix it, or {make}") from None
    if not isinstance(document, dict) or not isinstance(document.get("packages"), list):
        raise LibrariesError(f"{shown(path)}: packages must be a list: fix it, or {make}")
    if not document["packages"]:
        raise LibrariesError(f"{shown(path)}: names no packages yet, and {only}: {make}, {otherwise}")
    packages = tuple(_entry(path, number, entry) for number, entry in enumerate(document["packages"]))
    versions = {package.name: package.version for package in packages}
    for name in PACKAGES:
        if name not in versions:
            raise LibrariesError(f"{shown(path)}: packages has no {name}: {make}, {otherwise}")
    for name, version in pins.items():
        if versions[name] != version:
            has = f"has {name} {versions[name]}, and {version} is asked for"
            raise LibrariesError(f"{shown(path)}: {has}: name that version, or {make}")
    return Lock(str(document.get("channel", CHANNEL)), packages)


def _entry(path: Path, number: int, entry: Any) -> Package:
    where = f"{shown(path)}: packages[{number}]"
    values = entry if isinstance(entry, dict) else {}
    url, sha256 = (str(values.get(key, "")) for key in ("url", "sha256"))
    size = values.get("size")
    # CHANNEL/PLATFORM/NAME-VERSION-BUILD.conda; only a name may have a '-' in it
    match = re.fullmatch(r"[a-z0-9+]+://.+/(?:linux-64|noarch)/(.+)-([^-/]+)-([^-/]+)\.(?:conda|tar\.bz2)", url)
    if match is None:
        form = f"CHANNEL/{PLATFORM}/NAME-VERSION-BUILD.conda (or .tar.bz2)"
        raise LibrariesError(f"{where}.url: {hidden(url)!r} is not {form}")
    why = refusal(url)
    if why is not None:
        raise LibrariesError(f"{where}.url: {hidden(url)} {why}")
    if hidden(url) != url:
        raise LibrariesError(f"{where}.url: {hidden(url)} has a password or token in it: remove it from the lock")
    if re.fullmatch(r"[0-9a-f]{64}", sha256) is None:
        raise LibrariesError(f"{where}.sha256: {sha256!r} is not a SHA-256 of 64 lower-case hexadecimal digits")
    if type(size) is not int or not 0 < size <= LARGEST:
        raise LibrariesError(f"{where}.size: {size!r} is not the size of the file in bytes")
    return Package(*match.groups(), url, sha256, size)
