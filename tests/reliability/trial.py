"""One fault and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class CantPlant(Exception):
    """This fault can't be made on this machine; the message says why."""


@dataclass(frozen=True)
class Finding:
    """Describe, for a table, what was done, what envkit printed, what was kept, and what was ``wrong``."""

    done: str
    said: str
    kept: str
    wrong: list[str]


@dataclass(frozen=True)
class Fault:
    """``try_out`` makes the fault in a folder of its own. It raises CantPlant where that can't be done."""

    name: str
    title: str
    try_out: Callable[[Path], Finding]


class Expectations:
    """Collects what is not as it should be, so that one run of a fault tells all of it."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def that(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)

    def equal(self, what: str, seen: object, expected: object) -> None:
        self.that(seen == expected, f"{what} is {seen!r} and not {expected!r}")

    def says(self, what: str, text: str, words: str) -> None:
        self.that(words in text, f"{what} does not say {words!r}: {text!r}")
