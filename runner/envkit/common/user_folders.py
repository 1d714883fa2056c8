"""The user's folders for what the kit keeps between runs (XDG Base Directory Specification)."""

from __future__ import annotations

import os
from pathlib import Path


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
