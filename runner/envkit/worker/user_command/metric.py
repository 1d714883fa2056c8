"""Step times from the lines that somebody's training prints.

A metric is one of three things. A regular expression without a group: each line that it matches ends a step. One with
a group: the group is a step's time, or a rate. A path into lines that are JSON objects (``$.train.step_time``): what
stands there is a step's time, or a rate. Losses are read in the same way (``losses``).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from envkit.worker.errors import WorkerError
from envkit.worker.messages.captions import STEP_TIME
from envkit.worker.messages.metrics import (
    DecimalComma,
    ManyGroups,
    MatchesEverything,
    NotANumber,
    NotAPath,
    NotARegex,
    NumberCut,
    NumberWithUnit,
    PathWithoutKey,
    UnmatchedLines,
)
from envkit.worker.user_command import units
from envkit.worker.user_command.units import AUTO, PER_SECOND, Unit

# A part of a path: a key, or the number of an item.
PART = re.compile(r"""\.([\w-]+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]""")
# What terminals take as a command, for colours and for moving in a progress bar (ECMA-48, section 5.4).
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# 1,234.5 as logs of fast training have it; 0,123 has a decimal comma.
GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
# What says that a number is a rate.
RATE = re.compile(r"/s(?:ec(?:onds?)?)?\b|per[_ ]?sec|throughput|\b[fiqst]ps\b", re.IGNORECASE)
# What goes on with a number, where a metric ends with a part of it, or went before, where one begins with a part.
GOES_ON, THOUSANDS = re.compile(r"\.\d|[eE][+-]?\d"), re.compile(r",\d{3}(?!\d)")
ENDS_IN_A_PART = re.compile(r"\d(?:\.|[eE][+-]?)?$")
ENDS_IN_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})*,$")
FEW_DIGITS, THREE_DIGITS = re.compile(r"[1-9]\d{0,2}"), re.compile(r"\d{3}(?!\d)")
LONGEST_SHOWN = 120
# What stands in a line where a time should: a sign, or a word for no number.
NO_TIME = re.compile(r"(?<![\w.])-(?=\.?\d)|[-+]?\b(?:nan|inf(?:inity)?|none|null)\b", re.IGNORECASE)
# 0,401: no thousands begin with 0. And what of such a number goes on after a metric's group, or went before it.
DECIMAL_COMMA = re.compile(r"0,\d+|\d+,(?!\d{3}(?!\d))\d+")
COMMA_AFTER, COMMA_BEFORE = re.compile(r",\d+(?![\d.,])"), re.compile(r"(?<![\d.,])\d+,$")


class MetricError(WorkerError):
    """A text is no metric. The message is a clause whose subject is the text."""


class NotMeasured(WorkerError):
    """The command's lines, or its steps, give no step times."""


@dataclass(frozen=True)
class Found:
    """A number in a line: ``value`` as it stands there, the ``unit`` printed behind it, and where the number stands."""

    value: object
    unit: Unit | None = None
    begin: int = 0
    end: int = 0
    is_variant: bool = False  # another unit than the metric names stands behind it


@dataclass(frozen=True)
class Metric:
    """``expression`` or ``path``, one of the two."""

    text: str  # what was given for it
    expression: re.Pattern[str] | None
    path: tuple[str | int, ...]
    unit: str
    what: str = STEP_TIME
    written: Unit | None = None  # the unit that the expression names behind its group
    variant: re.Pattern[str] | None = None  # the expression with any other unit there, which changes with the speed
    has_words: bool = False  # beside the group and the unit, so that a line which has these is not any line with a time

    @property
    def looks_like(self) -> str | None:
        """The unit that its text names, if that is not seconds: ``it/s`` or ``samples_per_second``."""
        if self.is_clock:
            return None
        if RATE.search(_plain(self.text)):
            return PER_SECOND
        return self.written.choice if self.written is not None and not self.written.means("s") else None

    @property
    def is_clock(self) -> bool:
        """Return whether lines hold no number: the time between them counts."""
        return self.expression is not None and self.expression.groups == 0

    def look(self, line: str) -> Found | None:
        """Find a number and its unit in a line, or return None. Raises NotMeasured for a part of a number.

        With the unit ``auto`` the unit may also be the end of what the group or the path finds.
        """
        value = self.find(line)
        if value is None and self.variant is not None and (match := self.variant.search(line)):
            if match["reading"] is not None:
                unit = units.parse(match["unit"], self.written.item if self.written is not None else None)
                return Found(match["reading"], unit, match.start("reading"), match.end("unit"), True)
            if match["duration"] is not None:
                seconds = units.duration(match["duration"])
                return Found(seconds, None, match.start("duration"), match.end("duration"), True)
        if value is None or self.expression is None:
            return None if value is None else self._with_its_unit(Found(value))
        match = self.expression.search(line)
        if match is None:
            return None
        begin, end = match.span(1)
        unit = units.behind(line, end)
        reading = Found(value, unit, begin, end)
        return self._with_its_unit(reading) if unit is None else reading

    def _with_its_unit(self, reading: Found) -> Found:
        """Take the unit off the end of what was found, or the minutes out of ``1:05``, where the unit is ``auto``."""
        if self.unit != AUTO or not isinstance(reading.value, str):
            return reading
        if (seconds := units.duration(reading.value.strip())) is not None:
            return replace(reading, value=seconds, unit=units.parse("s"))
        number = units.WITH_UNIT.fullmatch(reading.value.strip())
        return reading if number is None else replace(reading, value=number[1], unit=units.parse(number[2]))

    def find(self, line: str) -> object:
        """Return text or a value of JSON in a line, or None for nothing. Raises NotMeasured for a part of a number."""
        if self.expression is not None:
            match = self.expression.search(line)
            if match and not self.is_clock and match[1] and (full_number := _with_comma(match)):
                raise NotMeasured(DecimalComma(self.what, shown(full_number), shown(line.lstrip()), pattern(self.what)))
            if match and not self.is_clock and match[1] and _is_cut(match):
                raise NotMeasured(NumberCut(self.what, self.text, shown(line.lstrip()), match[1]))
            return match and match.group(self.expression.groups)
        if not line.lstrip().startswith("{"):
            return None
        try:
            value = json.loads(line.lstrip())
        except (ValueError, RecursionError):
            return None
        for part in self.path:
            try:
                value = value[part]
            except (LookupError, TypeError):
                return None
        return value


def parse(text: str, unit: str = "s", quantity: str = STEP_TIME) -> Metric:
    """The metric of step times in ``unit``, or of ``quantity`` else numbers are.

    Raises MetricError for what is neither a regular expression with at most one group nor a path.
    """
    if text.startswith("$"):
        return Metric(text, None, _path(text), unit, quantity)
    try:
        expression = re.compile(text)
    except re.error as error:
        raise MetricError(NotARegex(error.msg, error.pos + 1 if error.pos is not None else None)) from None
    if expression.groups > 1:
        raise MetricError(ManyGroups(expression.groups, quantity))
    if expression.search("") is not None:
        raise MetricError(MatchesEverything())
    if quantity != STEP_TIME or not expression.groups:
        return Metric(text, expression, (), unit, quantity)
    return Metric(text, expression, (), unit, quantity, *_variant(text, unit))


def _variant(text: str, unit: str) -> tuple[Unit | None, re.Pattern[str] | None, bool]:
    """Return the unit that an expression names, the expression with any other unit there, and whether it has words.

    Times that grow past a minute lose the unit (``59.2s``, ``1:05``). As ``1:05`` may be a time of day, it counts only
    behind other words.
    """
    text = re.sub(r"\\(.)", lambda escaped: "/" if escaped[1] == "/" else escaped[0], text)
    span = units.group(text)
    written = units.written(text, span[1]) if span is not None else None
    if span is None or written is None:
        return None, None, False
    begin, end, named = written
    number = f"(?P<reading>{units.NUMBER}){text[span[1] : begin]}(?P<unit>{units.variants(named)})"
    before, after = (re.search(r"[^\W\d_]{2}", _plain(part)) is not None for part in (text[: span[0]], text[end:]))
    minutes = units.DURATION if named.item is None and before else r"(?!)"
    try:
        variant = re.compile(f"{text[: span[0]]}(?:{number}|(?P<duration>{minutes})){text[end:]}")
    except re.error:
        return named, None, False
    return named, variant if unit == AUTO or named.means(unit) else None, before or after


def _plain(expression: str) -> str:
    """A regular expression, as long as it was, with blanks for what has a backslash before it; but a blank is one."""
    return re.sub(r"\\.", "  ", expression)


def _path(text: str) -> tuple[str | int, ...]:
    keys: list[str | int] = []
    at = 1
    while at < len(text):
        match = PART.match(text, at)
        if match is None:
            raise MetricError(NotAPath(at + 1, text[at:]))
        keys.append(int(match[2]) if match[2] is not None else next(filter(None, (match[1], match[3], match[4]))))
        at = match.end()
    if not keys:
        raise MetricError(PathWithoutKey())
    return tuple(keys)


def unmatched(lines: tuple[int, str] | None) -> UnmatchedLines | None:
    """Return a message on unmatched lines: how many, and the first. None if absent."""
    return None if lines is None else UnmatchedLines(lines[0], shown(lines[1]))


def _with_comma(match: re.Match[str]) -> str | None:
    """All of a number with a decimal comma of which the group has one side, and the expression nothing of the other.

    1,234 is one of thousands, which ``_is_cut`` finds, and 1,2,3 are columns of a table.
    """
    before, digits, after = match.string[: match.start(1)], match[1], match.string[match.end(1) :]
    if not digits.isdigit() or _is_cut(match):
        return None
    if match.end(1) == match.end() and (fraction := COMMA_AFTER.match(after)) and before[-1:] not in (",", "."):
        return digits + fraction[0]
    if match.start(1) == match.start() and (begin := COMMA_BEFORE.search(before)) and after[:1] not in (",", "."):
        return begin[0] + digits
    return None


def _is_cut(match: re.Match[str]) -> bool:
    """Return whether the group has one end of a number, with nothing beside it in the expression."""
    before, number, after = match.string[: match.start(1)], match[1], match.string[match.end(1) :]
    goes_on = GOES_ON.match(after) or (FEW_DIGITS.fullmatch(number) and THOUSANDS.match(after))
    if goes_on and match.end(1) == match.end() and number[-1:].isdigit():
        return True
    if match.start(1) > match.start() or not number[:1].isdigit():
        return False
    return ENDS_IN_A_PART.search(before) is not None or bool(
        ENDS_IN_THOUSANDS.search(before) and THREE_DIGITS.match(number)
    )


def cleaned(line: str) -> str:
    """A line as metrics see it: without colours, and blanks at its end; what it is indented by is part of it."""
    return (CONTROL.sub("", line) if "\x1b" in line else line).rstrip()


def number(value: object) -> float | None:
    """Return the result of ``Metric.find`` as a number, nan or infinite too, or None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    text = value.replace(",", "") if isinstance(value, str) and GROUPED.fullmatch(value) else value
    try:
        return float(text)
    except (ValueError, OverflowError):
        return None


def unreadable(quantity: str, value: object, line: str, limit: float | None = None) -> NotMeasured:
    """Return the error for a ``value`` in a line, which is no number, or none above ``limit``."""
    if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value):
        return NotMeasured(DecimalComma(quantity, shown(value), shown(line)))
    if quantity == STEP_TIME and isinstance(value, str) and units.WITH_UNIT.fullmatch(value.strip()):
        return NotMeasured(NumberWithUnit(quantity, shown(value), shown(line)))
    text = json.dumps(value) if not isinstance(value, str) else repr(value)
    return NotMeasured(NotANumber(quantity, shown(text), shown(line), pattern(quantity), limit))


def pattern(quantity: str) -> str:
    """Return the name of the metric that reads step times, or losses."""
    return "metric" if quantity == STEP_TIME else "loss metric"


def shown(text: str) -> str:
    """The text, cut where a message would get too long."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
