"""Waiting for things to happen, and for processes to be gone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from envkit.engines import owner

PATIENCE_S = 240
Answer = TypeVar("Answer")


def until(found: Callable[[], Answer]) -> Answer:
    """Ask until the answer counts as true, and return it; fail when it takes far too long."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return answer


def gone(pid: int) -> bool:
    """Whether no such process runs; one that ended and that nobody has waited for yet is gone."""
    fields = owner.stat_fields(pid)
    return fields is None or fields[0] == "Z"


def running(word: str) -> dict[int, str]:
    """The processes that have this word in their commands, by their ids."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_text(errors="replace")
    return {pid: command for pid, command in found.items() if word in command}
