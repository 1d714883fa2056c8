"""Messages of values on the command line that are not of the form that an option takes."""

from __future__ import annotations

from envkit.messages import Message

# Stands for the name of an option that has no name.
COMMAND = "the command after --"


class NoUnit(Message):
    """A time has no unit."""

    code = "cli.no-unit"
    template = "'{number}' has no unit; write {number}s or {number}m"

    number: str


class NotATime(Message):
    """A value is no time above 0."""

    code = "cli.not-a-time"
    template = "'{given}' is not a time above 0; write for example 60s, 4m or 1h"

    given: str


class NotAShare(Message):
    """A value is no share between 0 and 1."""

    code = "cli.not-a-share"
    template = "'{given}' is not a share between 0 and 1; write for example 4% or 0.04"

    given: str


class NotACount(Message):
    """A value is no whole number above 0."""

    code = "cli.not-a-count"
    template = "'{given}' is not a whole number above 0"

    given: str


class NoNodeNames(Message):
    """A list of nodes is empty."""

    code = "cli.no-node-names"
    template = "'{given}' names no node; write for example node1,node2"

    given: str


class NotADate(Message):
    """A value is no date, and no time span before now."""

    code = "cli.not-a-date"
    template = "'{given}' is not a date; write for example 2026-11-01, 12h, 7d or 4w"

    given: str


class NotCounts(Message):
    """A value is no list of whole numbers that are ``least`` or more."""

    code = "cli.not-counts"
    template = "'{given}' is not a list of whole numbers, {least} or more; write them as 1,2,4"

    given: str
    least: int


class UnknownWord(Message):
    """A list has an unknown word. ``what`` is the noun for one of them."""

    code = "cli.unknown-word"
    template = "no {what} '{word}'[ (did you mean '{suggestion}'?)]; choose one of: {known:list}"

    what: str
    word: str
    known: tuple[str, ...]
    suggestion: str | None = None
