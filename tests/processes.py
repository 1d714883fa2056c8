"""Waiting for things to happen, and for processes to be gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from runner.engines import owner

PATIENCE_S = 90
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
