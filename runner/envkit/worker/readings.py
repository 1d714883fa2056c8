"""Readings that may not be had: each with its value, or with why there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from envkit.messages import Message
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


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return what is in ``folder`` by a glob pattern; nothing of a process that ends while its folder is read."""
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def read(readings: dict[str, object], name: str, ask: Callable[[], object]) -> None:
    """Put the result of ``ask`` into ``readings`` by ``name``; if it fails, a message (JSON) under ``not_verified``."""
    try:
        readings[name] = ask()
    except Unread as error:
        _explain(readings, name, error.message)
    except (AttributeError, KeyError, OSError, RuntimeError) as error:  # a torch or a driver that has no such thing
        _explain(readings, name, failed(error))


def _explain(readings: dict[str, object], name: str, message: Message) -> None:
    """Keep why a reading is missing."""
    reasons = readings.setdefault(NOT_VERIFIED, {})
    assert isinstance(reasons, dict)
    reasons[name] = message.to_json()


def failed(error: Exception) -> ReadingFailed:
    """Return the message on an exception of a library, a driver or the system."""
    return ReadingFailed(type(error).__name__, str(error) or None)
