"""Readings that may not be had: each with its value, or with why there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

# Where a probe keeps, by the name of a reading, why there is none (``envkit.checks.effect`` looks there).
NOT_VERIFIED = "not_verified"


class Unread(Exception):
    """Why something can't be read here, or what was read proves nothing; in words."""


def text_of(path: Path) -> str:
    """What is in a file; nothing where it can't be read."""
    try:
        return path.read_text(errors="replace")  # the names of files may be any bytes
    except OSError:
        return ""


def read(found: dict[str, Any], name: str, ask: Callable[[], Any]) -> None:
    """Put what ``ask`` gives into ``found`` under ``name``, or else why it gives nothing under ``not_verified``."""
    try:
        found[name] = ask()
    except Unread as error:
        found.setdefault(NOT_VERIFIED, {})[name] = str(error)
    except (AttributeError, KeyError, OSError, RuntimeError) as error:  # a torch or a driver that has no such thing
        found.setdefault(NOT_VERIFIED, {})[name] = f"{type(error).__name__}: {error}"
