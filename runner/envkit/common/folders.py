"""How a folder is named to the user: as from where they are, and in a command to paste, as a shell takes it."""

from __future__ import annotations

import shlex
from pathlib import Path


def short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_absolute() and path.is_relative_to(Path.cwd()) else path


def quoted(path: Path) -> str:
    return shlex.quote(str(short(path)))
