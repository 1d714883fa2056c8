"""Readings that may not be had: each with its value, or with why there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from envkit.worker.errors import WorkerError
from envkit.worker.messages.evidence import ReadingFailed

# Where a probe keeps, by the name of a reading, why there is none (``envkit.checks.effect`` looks there).
NOT_VERIFIED = "not_verified"


class Unread(WorkerError):
    """Something can't be read here, or what was read proves nothing."""


def text_of(path: Path) -> str:
    """Return what is in a file; nothing where it can't be read."""
    try:
        return path.read_text(errors="replace")  # the names of files may be any bytes
    except OSError:
        return ""


def read(found: dict[str, Any], name: str, ask: Callable[[], Any]) -> None:
    """Put the result of ``ask`` into ``found`` under ``name``; if it fails, a message (JSON) under ``not_verified``."""
    try:
        found[name] = ask()
    except Unread as error:
        found.setdefault(NOT_VERIFIED, {})[name] = error.message.to_json()
    except (AttributeError, KeyError, OSError, RuntimeError) as error:  # a torch or a driver that has no such thing
        found.setdefault(NOT_VERIFIED, {})[name] = failed(error).to_json()


def failed(error: Exception) -> ReadingFailed:
    """Return the message on an exception of a library, a driver or the system."""
    return ReadingFailed(type(error).__name__, str(error) or None)
