"""The user's folders (XDG Base Directory Specification), and how messages name a folder."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def short(path: Path) -> Path:
    """Return a path as from the current folder, if it is in there."""
    return path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path


def quoted(path: Path) -> str:
    """Return a path for a command to paste, as a shell takes it."""
    return shlex.quote(str(short(path)))


def cache() -> Path:
    """Return the folder for what can be made again, which may not exist. RuntimeError if there is no home."""
    return _base("XDG_CACHE_HOME", ".cache")


def configuration() -> Path:
    """Return the folder for what the user keeps, which may not exist. RuntimeError if there is no home."""
    return _base("XDG_CONFIG_HOME", ".config")


def _base(variable: str, below_home: str) -> Path:
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():  # the specification says to ignore it then
        base = Path.home() / below_home
    return base / "envkit"
