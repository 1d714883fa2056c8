"""Messages of ``envkit baseline check``: what keeps a baseline from being compared."""

from __future__ import annotations

from envkit.messages import Message


class BudgetOfCheck(Message):
    """--budget was given to baseline check."""

    template = (
        "--budget can't be given to baseline check, which measures a fixed number of blocks ({blocks:d}, as "
        "many as {baseline} has); give another with --blocks"
    )

    blocks: int
    baseline: str


class TooFewBlocks(Message):
    """--blocks of a baseline check gives no interval."""

    template = "--blocks {blocks:d}: is too few to compare; give {least} or more"

    blocks: int
    least: int


class CommandNotGiven(Message):
    """A baseline check was given no PROFILE. ``command`` measures what the baseline measured."""

    template = (
        "{file}: a baseline does not say what to run; read its command line, and give it if you trust it: {command}"
    )

    file: str
    command: str


class NotComparable(Message):
    """A baseline can't be compared with what is measured now."""

    template = (
        "{file}: can't be compared with what is measured now: {reasons:lines}; save a baseline for each such case"
    )

    file: str
    reasons: tuple[Message, ...]


class OtherCommandLine(Message):
    """A baseline is of another measurement than the command line. ``more`` is how many differences are not named."""

    template = (
        "{file}: differs from the command line: {differences:lines}[; and {more} more]; give the command that it was "
        "measured with, or compare another run: {instead:command}"
    )

    file: str
    differences: tuple[Message, ...]
    more: int | None
    instead: tuple[str, ...]


class BadSteps(Message):
    """A baseline has an invalid number of steps."""

    template = "{file}: study.{key}: {found} is no number of steps from 0 to {most:d}"

    file: str
    key: str
    found: str
    most: int
