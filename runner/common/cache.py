"""Where the kit keeps what it can make again (XDG Base Directory Specification)."""

from __future__ import annotations

import os
from pathlib import Path


def folder(name: str) -> Path:
    """The user's folder for ``name``, which may not be there yet."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the specification says to ignore it then
        base = Path.home() / ".cache"
    return base / "envkit" / name
