"""Step times from the lines that somebody's training prints.

A metric is one of three things. A regular expression without a group: each line that it matches ends a step. One with
a group: the group is a step's time, or a rate. A path into lines that are JSON objects (``$.train.step_time``): what
stands there is a step's time, or a rate. Losses are read in the same way (``losses``).
"""

from __future__ import annotations

import json
import math
import re
import statistics
from dataclasses import dataclass
from typing import Any

PER_SECOND = "per-second"
# What the numbers are that a metric finds.
STEP_TIME, LOSS = "a step's time", "a loss"
# What a number in each unit has to be multiplied with to be seconds; a rate is turned round.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, PER_SECOND: 1.0}
# A part of a path: a key, or the number of an item.
PART = re.compile(r"""\.([\w-]+)|\[(\d+)\]|\['([^']+)'\]|\["([^"]+)"\]""")
# What terminals take as a command, for colours and for moving in a progress bar (ECMA-48, section 5.4).
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# 1,234.5 as logs of fast training have it; 0,123 has a decimal comma.
GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
# What a metric counts in each second, and how long each takes: tqdm changes from one to the other where that is one
# second (``format_meter`` in its source).
COUNTED = re.compile(r"([A-Za-z]\w*)/s\b")
TIMED = re.compile(r"(?<!\w)s/([A-Za-z]\w*)")
# What says that a number is a rate, or that it is none of seconds.
RATE = re.compile(r"/s(?:ec(?:onds?)?)?\b|per[_ ]?sec|throughput|\b[fi]ps\b", re.IGNORECASE)
SMALLER = re.compile(r"\)[\s?*+]*([mu]s)\b")
# What goes on with a number, where a metric ends with a part of it, or went before, where one begins with a part.
GOES_ON, THOUSANDS = re.compile(r"\.\d|[eE][+-]?\d"), re.compile(r",\d{3}(?!\d)")
ENDS_IN_A_PART = re.compile(r"\d(?:\.|[eE][+-]?)?$")
ENDS_IN_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})*,$")
FEW_DIGITS, THREE_DIGITS = re.compile(r"[1-9]\d{0,2}"), re.compile(r"\d{3}(?!\d)")
# More of the lines than this that are turned round are not left out: they are steps too. An outer bar has few. They are
# of the same bar where it has no others, or where their time is within this of the others': each step of an outer bar
# takes several of the inner one.
MOST_TURNED, SAME_BAR = 0.2, 1.5
LONGEST_SHOWN = 120
# What stands in a line where a time should: a sign, or a word for no number.
NO_TIME = re.compile(r"(?<![\w.])-(?=\.?\d)|[-+]?\b(?:nan|inf(?:inity)?|none|null)\b", re.IGNORECASE)
# 0,401: no thousands begin with 0. And what of such a number goes on after a metric's group, or went before it.
DECIMAL_COMMA = re.compile(r"0,\d+|\d+,(?!\d{3}(?!\d))\d+")
COMMA_AFTER, COMMA_BEFORE = re.compile(r",\d+(?![\d.,])"), re.compile(r"(?<![\d.,])\d+,$")
COLUMN = "or, where it ends a column of a table, let the metric match the comma beside the number too"
# Of those that are timed as they arrive: with more of them at one moment the command's output was held back.
MOST_AT_ONCE = 0.5


class MetricError(ValueError):
    """A metric that is none; the text says what is wrong with it, and where."""


class NotMeasured(ValueError):
    """Lines that make no step times; the text says why, and what to do, as a clause that follows "the worker"."""


@dataclass(frozen=True)
class Metric:
    """``expression`` or ``path``, one of the two."""

    text: str  # what was given for it
    expression: re.Pattern[str] | None
    path: tuple[str | int, ...]
    unit: str
    turned: re.Pattern[str] | None = None  # finds a bar's lines with a rate where others have a time, or the reverse
    what: str = STEP_TIME

    @property
    def looks_like(self) -> str | None:
        """The unit that its text names, where that is another than seconds: ``it/s`` or ``samples_per_second``."""
        if self.is_clock:
            return None
        smaller = SMALLER.search(_plain(self.text)) if self.expression is not None else None
        return PER_SECOND if RATE.search(_plain(self.text)) else smaller and smaller[1]

    @property
    def is_clock(self) -> bool:
        """Whether lines hold no number: the time between them counts."""
        return self.expression is not None and self.expression.groups == 0

    def find(self, line: str) -> Any:
        """What there is in a line: text or a value, or None for nothing. Raises NotMeasured for a part of a number."""
        if self.expression is not None:
            match = self.expression.search(line)
            if match and not self.is_clock and match[1] and (whole := _with_comma(match)):
                raise NotMeasured(f"{_decimal_comma(self.what, whole, line)}; {COLUMN}")
            if match and not self.is_clock and match[1] and _is_cut(match):
                raise NotMeasured(
                    f"can't read {self.what}: '{self.text}' cuts the number in '{shown(line.lstrip())}' at "
                    rf"'{match[1]}'; let it match all of that, as (\S+) does, or the sign beside the number too, as "
                    r"(\d+), does"
                )
            return match and match.group(self.expression.groups)
        if not line.lstrip().startswith("{"):
            return None
        try:
            value = json.loads(line.lstrip())
        except ValueError:
            return None
        for part in self.path:
            try:
                value = value[part]
            except (LookupError, TypeError):
                return None
        return value


def parse(text: str, unit: str = "s", what: str = STEP_TIME) -> Metric:
    """The metric of step times in ``unit``, or of ``what`` else numbers are.

    Raises MetricError for what is neither a regular expression with at most one group nor a path.
    """
    if text.startswith("$"):
        return Metric(text, None, _path(text), unit, what=what)
    try:
        expression = re.compile(text)
    except re.error as error:
        at = f" at position {error.pos + 1}" if error.pos is not None else ""
        raise MetricError(f"is no regular expression: {error.msg}{at}") from None
    if expression.groups > 1:
        raise MetricError(f"has {expression.groups} groups, and one can be {what}; write the others (?:…)")
    if expression.search("") is not None:
        more = "what ends a step" if what == STEP_TIME else f"the lines that have {what}"
        raise MetricError(f"matches an empty line, and so every line; say more of {more}")
    shows = {PER_SECOND: COUNTED, "s": TIMED}.get(unit)
    counted = shows.search(_plain(text)) if shows and expression.groups and what == STEP_TIME else None
    if counted is None:
        return Metric(text, expression, (), unit, what=what)
    other = f"s/{counted[1]}" if unit == PER_SECOND else f"{counted[1]}/s"
    try:
        turned = re.compile(f"{text[: counted.start()]}{other}{text[counted.end() :]}")
    except re.error:
        turned = None
    return Metric(text, expression, (), unit, turned)


def _plain(expression: str) -> str:
    """A regular expression, as long as it was, with blanks for what has a backslash before it; but a blank is one."""
    return re.sub(r"\\.", "  ", expression)


def _path(text: str) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    at = 1
    while at < len(text):
        match = PART.match(text, at)
        if match is None:
            raise MetricError(
                f"is no path at position {at + 1} ('{text[at:]}'); write it like $.train.step_time, $.times[0] "
                "or $['a/b']"
            )
        parts.append(int(match[2]) if match[2] is not None else next(filter(None, (match[1], match[3], match[4]))))
        at = match.end()
    if not parts:
        raise MetricError("names no key; write it like $.train.step_time")
    return tuple(parts)


class Readings:
    """What a metric finds in the lines of one run. ``seconds`` has the steps' times so far.

    Each of the first ``left_out`` readings may be 0, as bars print it before they know a rate. ``turned`` counts the
    lines that are turned round; ``_every`` has their times too, in the order of the lines, None for what is no number.
    """

    def __init__(self, metric: Metric, left_out: int = 0) -> None:
        self.metric = metric
        self.left_out = left_out
        self.seconds: list[float] = []
        self._every: list[tuple[float | None, bool]] = []
        self.lines = self.turned = 0
        self.last_line = ""
        self._arrived: float | None = None
        self.passed_over: tuple[int, str] | None = None  # lines with no time where others have one, and the first

    def take(self, line: str, at_s: float) -> None:
        """Look at one line, which came ``at_s`` (seconds, of any clock). Raises NotMeasured for what is no number."""
        line = cleaned(line)
        if not line:
            return
        self.lines += 1
        self.last_line = line.lstrip()
        found = self.metric.find(line)
        if found is None:
            match = self.metric.turned.search(line) if self.metric.turned is not None else None
            if match is not None:
                self.turned += 1
                self._every.append((self._turned_round(match), True))
            elif self._has_no_time(line):
                count, first = self.passed_over or (0, self.last_line)
                self.passed_over = count + 1, first
            return
        if not self.metric.is_clock:
            may_be_0 = len(self.seconds) < self.left_out
            self.seconds.append(_seconds(found, self.metric.unit, self.last_line, may_be_0))
            self._every.append((self.seconds[-1], False))
            if len(self.seconds) == self.left_out:
                self.turned = 0  # the first steps are slow, and these are left out
            return
        if self._arrived is not None:
            self.seconds.append(at_s - self._arrived)
        self._arrived = at_s

    def _has_no_time(self, line: str) -> bool:
        """Whether the metric would match a line if it had a time where there is none."""
        if self.metric.expression is None or self.metric.is_clock:
            return False
        with_time = NO_TIME.sub(lambda found: "" if found[0] == "-" else "1", line)
        return with_time != line and self.metric.expression.search(with_time) is not None

    def _turned_round(self, match: re.Match[str]) -> float | None:
        """The time in a line that is turned round, or None."""
        other = "s" if self.metric.unit == PER_SECOND else PER_SECOND
        try:
            return None if not match[1] or _is_cut(match) else _seconds(match[1], other, self.last_line, False)
        except NotMeasured:
            return None

    def _of_one_bar(self, warmup: int) -> list[float] | None:
        """The times of all lines, turned round or not, where they are the steps of one bar; else None."""
        times = [time for time, _ in self._every if time is not None]
        counted = self._every[warmup:]
        turned, others = ([time for time, is_turned in counted if time and is_turned == one] for one in (True, False))
        if len(times) < len(self._every) or not turned:
            return None
        apart = statistics.median(turned) / statistics.median(others) if others else 1.0
        return times if 1 / SAME_BAR <= apart <= SAME_BAR else None

    def split(self, warmup: int) -> tuple[list[float], list[float]]:
        """The first ``warmup`` readings, and those that count. Raises NotMeasured for too few, or a halting clock."""
        metric = f"the metric '{self.metric.text}'"
        if not self.lines:
            raise NotMeasured(
                f"found no step: the command printed nothing for {metric} to match; let it print its steps"
            )
        seconds = self.seconds
        if self.turned > MOST_TURNED * (self.turned + len(self.seconds)):
            seconds = self._of_one_bar(warmup) or []
            if not seconds:
                is_rate = self.metric.unit == PER_SECOND
                fix = "match more of the bar that is meant, or let it print a time for each step and match that"
                time, rate, side = "the seconds of a step", "a rate", "below" if is_rate else "above"
                have, has = (time, rate) if is_rate else (rate, time)
                raise NotMeasured(
                    f"can't time the steps: {self.turned} of {self.turned + len(self.seconds)} lines have {have} where "
                    f"{metric} has {has}, as bars do {side} one step in a second, and of quite another length; {fix}"
                )
        if not seconds:
            once = self._arrived is not None
            matches = (
                f"matches only one of the {self.lines} lines" if once else f"matches none of the {self.lines} lines"
            )
            last = f"that the command printed, the last being '{shown(self.last_line)}'"
            fix = "match the line that comes with each step" if once else "try it on a line like that"
            alike = f", and there are {told}" if (told := said_of(self.passed_over)) else ""
            raise NotMeasured(f"found no step: {metric} {matches} {last}{alike}; {fix}")
        least = 2 if self.metric.is_clock else 1  # a number may be that of the whole training
        if len(seconds) < warmup + least:
            fix = f"train for longer{', or leave out fewer with --warmup-lines' if warmup else ''}"
            found = f"{len(seconds)} reading{'' if len(seconds) == 1 else 's'} of {metric}"
            counts = "2 that count" if self.metric.is_clock else "1 that counts"
            why = f": the {warmup} that are left out, and {counts}" if warmup else ""
            alike = f", besides {told}" if (told := said_of(self.passed_over)) else ""
            raise NotMeasured(f"found {found}{alike}, and it takes {warmup + least}{why}; {fix}")
        counted = seconds[warmup:]
        if sum(second <= 0 for second in counted) > MOST_AT_ONCE * len(counted):
            raise NotMeasured(
                f"can't time the steps: most lines that {metric} matches arrived at one moment, because the command "
                "holds its output back; let it flush each line (stdbuf -oL), or print a time and match that"
            )
        return seconds[:warmup], counted


def said_of(passed_over: tuple[int, str] | None) -> str:
    """``2 lines like 'time nan' that it does not match``; nothing where there are none."""
    if passed_over is None:
        return ""
    count, line = passed_over
    return f"{count} line{'' if count == 1 else 's'} like '{shown(line)}' that it does not match"


def _with_comma(match: re.Match[str]) -> str | None:
    """All of a number with a decimal comma of which the group has one side, and the expression nothing of the other.

    1,234 is one of thousands, which ``_is_cut`` finds, and 1,2,3 are columns of a table.
    """
    before, found, after = match.string[: match.start(1)], match[1], match.string[match.end(1) :]
    if not found.isdigit() or _is_cut(match):
        return None
    if match.end(1) == match.end() and (rest := COMMA_AFTER.match(after)) and before[-1:] not in (",", "."):
        return found + rest[0]
    if match.start(1) == match.start() and (begin := COMMA_BEFORE.search(before)) and after[:1] not in (",", "."):
        return begin[0] + found
    return None


def _decimal_comma(what: str, found: str, line: str) -> str:
    return (
        f"can't read {what}: '{shown(found)}' in '{shown(line.lstrip())}' has a decimal comma; let the command print "
        "a decimal point, as with LC_ALL=C"
    )


def _is_cut(match: re.Match[str]) -> bool:
    """Whether the group has the beginning or the end of a number, and the expression nothing beside it."""
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


def number(found: Any) -> float | None:
    """What ``Metric.find`` has found, as a number, which may be nan or infinite; None where it is none."""
    text = found.replace(",", "") if isinstance(found, str) and GROUPED.fullmatch(found) else found
    try:
        return float(text) if not isinstance(text, bool) else None
    except (TypeError, ValueError, OverflowError):
        return None


def unreadable(what: str, found: Any, line: str, wanted: str) -> NotMeasured:
    """That ``found`` in a line is not the number that is ``wanted``."""
    if isinstance(found, str) and DECIMAL_COMMA.fullmatch(found):
        return NotMeasured(_decimal_comma(what, found, line))
    given = json.dumps(found) if not isinstance(found, str) else repr(found)
    metric = "metric" if what == STEP_TIME else "loss metric"
    return NotMeasured(
        f"can't read {what}: {shown(given)} in '{shown(line)}' is no {wanted}; let the {metric} match nothing else"
    )


def _seconds(found: Any, unit: str, line: str, may_be_0: bool) -> float:
    """The time of a step. Raises NotMeasured."""
    value = number(found)
    if value == 0 and may_be_0:
        return 0.0
    if value is None or not math.isfinite(value) or value <= 0:
        raise unreadable(STEP_TIME, found, line, "number above 0")
    return 1 / value if unit == PER_SECOND else value * SECONDS[unit]


def shown(text: str) -> str:
    """The text, cut where a message would get too long."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
