r"""Messages on metrics: what is no metric, and numbers in a line that can't be read.

``what`` is one of ``STEP_TIME`` and ``LOSS`` of ``captions``; ``pattern`` is "metric" or "loss metric".
"""

from __future__ import annotations

from envkit.messages import Message


class NotARegex(Message):
    """Python refused a regular expression, with ``reason``. ``position`` counts from 1."""

    template = "is not a regular expression: {reason}[ at position {position:d}]"

    reason: str
    position: int | None = None


class ManyGroups(Message):
    """A regular expression has several groups."""

    template = "has {groups} groups, and one can be {what}; write the others (?:…)"

    groups: int
    what: str


class MatchesEverything(Message):
    """A regular expression matches an empty line."""

    template = "matches an empty line, and so every line; match more of the lines that it is for"


class NotAPath(Message):
    """A path has an error at a position, which counts from 1."""

    template = (
        "is not a path at position {position:d} ('{rest}'); write it like $.train.step_time, $.times[[0]] or $[['a/b']]"
    )

    position: int
    rest: str


class PathWithoutKey(Message):
    """A path names no key."""

    template = "names no key; write it like $.train.step_time"


class EmptyLossMetric(Message):
    """A metric of losses is empty."""

    template = "is empty; give a regular expression with a group around the loss, or a path such as $.loss"


class NoLossGroup(Message):
    """A metric of losses has no group."""

    template = r"has no group that could be a loss; put one around it, as in loss (\S+)"


class NumberCut(Message):
    """The metric's group has a part of a number."""

    template = (
        "can't read {what}: '{metric}' cuts the number in '{line}' at '{part}'; "
        r"let it match all of that, as (\S+) does, or the sign beside the number too, as (\d+), does"
    )

    what: str
    metric: str
    line: str
    part: str


class DecimalComma(Message):
    """A number has a decimal comma. ``column`` is the pattern that found a part of it, which may end a column."""

    template = (
        "can't read {what}: '{number}' in '{line}' has a decimal comma; let the command print a decimal point, "
        "as with LC_ALL=C[; or, where it ends a column of a table, let the {column} match the comma beside the number "
        "too]"
    )

    what: str
    number: str
    line: str
    column: str | None = None


class NumberWithUnit(Message):
    """The metric's group has the unit too."""

    template = "can't read {what}: '{number}' in '{line}' has a unit; leave it out of the group, or give --unit auto"

    what: str
    number: str
    line: str


class NotANumber(Message):
    """A metric found something else than a number, or one that is not above ``limit``."""

    template = (
        "can't read {what}: {value} in '{line}' is not a number[ above {limit:g}]; let the {pattern} match nothing else"
    )

    what: str
    value: str  # quoted if it is text
    line: str
    pattern: str
    limit: float | None = None


class NoUnit(Message):
    """A number has no unit, and each is to be read in its own."""

    template = (
        "found no unit behind '{number}' in '{line}'; with --unit auto each number needs one, as in 8.3 ms or "
        "12.5 it/s; name the unit with --unit"
    )

    number: str
    line: str


class UnmatchedLines(Message):
    """Lines that the metric does not match, though they are like others; ``line`` is the first."""

    template = "{lines:count line} like '{line}' that it does not match"

    lines: int
    line: str


class NothingPrinted(Message):
    """The command printed nothing. ``kind`` is "step" or "loss"."""

    template = (
        "found no {kind}: the command printed nothing for the {pattern} '{metric}' to match; let it print each {kind}"
    )

    kind: str
    pattern: str
    metric: str


class NoMatch(Message):
    """A metric matches no line. ``kind`` is "step" or "loss"."""

    template = (
        "found no {kind}: the {pattern} '{metric}' matches none of the {lines} lines that the command printed, "
        "the last being '{last}'[, and there are {alike}]; try it on a line like that"
    )

    kind: str
    pattern: str
    metric: str
    lines: int
    last: str
    alike: Message | None = None


class LossesUnlikeSteps(Message):
    """There are more losses than steps, or fewer. ``for_nan`` is what would match a loss of nan too."""

    template = (
        "saw {losses:count loss|losses} and {steps:count step}: both patterns must match the same steps"
        "[; a loss of nan is matched by {for_nan}, and not by ([[0-9.]]+)]"
    )

    losses: int
    steps: int
    for_nan: str | None = None
