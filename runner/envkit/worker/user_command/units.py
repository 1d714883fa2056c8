"""Units of a step's time as trainings print them: ``ms``, ``sec/it``, ``kit/s``, ``images/second``.

Programs change the unit with the speed: tqdm shows ``1.05s/it`` below one step a second and, with ``unit_scale``,
``1.05kit/s`` above a thousand. Keras and dora change from milliseconds to seconds. A metric that reads one of the two
units reads the fast steps only, or the slow ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

AUTO, PER_SECOND, PER_MINUTE = "auto", "per-second", "per-minute"
# The seconds in one of each unit; a rate is inverted.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, PER_SECOND: 1.0, PER_MINUTE: 60.0}
RATES = (PER_SECOND, PER_MINUTE)
# What --unit takes. With AUTO each number's unit is the text behind it.
CHOICES = (*SECONDS, AUTO)
WORDS = {
    1e-9: ("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"),
    1e-6: ("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"),
    1e-3: ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "secs", "second", "seconds"),
    60.0: ("min", "mins", "minute", "minutes"),
    3600.0: ("hr", "hrs", "hour", "hours"),
}
TIMES = {word: seconds for seconds, words in WORDS.items() for word in words}
# SI prefixes that rates have in front of the item (tqdm's ``format_sizeof``).
PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# Items of which ``k`` or ``M`` in front is a prefix: ``kit`` is a thousand iterations, ``kernels`` are kernels.
ITEMS = frozenset(
    (
        "b", "batch", "batches", "byte", "bytes", "ex", "example", "examples", "flop", "flops", "frame", "frames",
        "img", "imgs", "image", "images", "it", "its", "iter", "iters", "iteration", "iterations", "item", "items",
        "op", "ops", "record", "records", "row", "rows", "sample", "samples", "seq", "seqs", "step", "steps", "tok",
        "toks", "token", "tokens", "word", "words",
    )
)  # fmt: skip
_TIME = "|".join(sorted(TIMES, key=len, reverse=True))
# Not longer, so that a long line without blanks takes no longer to look through.
_ITEM = r"[A-Za-z]\w{0,30}"
_OF = r"(?:\s?/\s?|\s+per\s+)"
# A unit ends where a word does, and where nothing is divided by it or set to a value.
_END = r"(?![\w/]|\s*=)"
UNIT = rf"(?:(?:{_TIME}){_OF}{_ITEM}|{_ITEM}{_OF}(?:{_TIME})|(?:{_TIME})){_END}"
_PER_ITEM = re.compile(rf"({_TIME}){_OF}({_ITEM})")
_RATE = re.compile(rf"({_ITEM}){_OF}({_TIME})")
_BEHIND = re.compile(rf"\s*({UNIT})")
# ``time 0.35 min 0.31 max 0.40``: a word with a number behind it is that number's name.
_LABEL = re.compile(r"\s*[:=]?\s*[-+]?\.?\d")
NUMBER = (
    r"(?<![\d.])(?<!\d,)(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)"
)
# ``1:05``, ``1:02:03.5`` and ``1m05s``, as programs print times of a minute or more.
DURATION = (
    r"(?<![\d.:])(?:\d+:[0-5]\d(?::[0-5]\d)?(?:\.\d+)?(?![\d:])"
    r"|(?:\d+\s?h\s?)?\d+\s?m(?:in)?\s?\d+(?:\.\d+)?\s?s(?!\w))"
)
WITH_UNIT = re.compile(rf"({NUMBER})\s*({UNIT})")
# A time or a rate anywhere in a line.
TIMED = re.compile(rf"{NUMBER}\s?(?P<unit>{UNIT})|{DURATION}")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_LETTERS = re.compile(r"(?:(\d+)\s?h\s?)?(\d+)\s?m(?:in)?\s?(\d+(?:\.\d+)?)\s?s")


@dataclass(frozen=True)
class Unit:
    """A unit as it was printed. A number in it is ``seconds`` each or, of a rate, one over that many ``seconds``."""

    text: str
    seconds: float
    is_rate: bool
    item: str | None = None  # what a rate counts, or what a time is for; None of a bare time

    def convert(self, value: float) -> float:
        """Return the seconds of one item."""
        return self.seconds / value if self.is_rate else value * self.seconds

    def means(self, choice: str) -> bool:
        """Tell whether ``choice``, one of ``SECONDS``, is this unit. Of a rate the scale does not matter."""
        if self.is_rate or choice in RATES:
            return self.is_rate and choice in RATES
        return self.seconds == SECONDS[choice]

    @property
    def choice(self) -> str:
        """Return what to give as --unit for numbers in this unit."""
        return next((name for name in SECONDS if self.means(name)), AUTO)


def parse(text: str, item: str | None = None) -> Unit | None:
    """Parse a unit, or return None for any other text. ``item`` is what the metric is known to count."""
    if text in TIMES:
        return Unit(text, TIMES[text], False)
    if match := _PER_ITEM.fullmatch(text):
        return Unit(text, TIMES[match[1]], False, match[2])
    if match := _RATE.fullmatch(text):
        scale, counted = _scaled(match[1], item)
        return Unit(text, TIMES[match[2]] / scale, True, counted)
    return None


def _scaled(word: str, item: str | None) -> tuple[float, str]:
    """Split ``kit`` into 1000 and ``it``."""
    base = word[1:]
    if word[0] in PREFIXES and base and word != item and (base == item or base.lower() in ITEMS):
        return PREFIXES[word[0]], base
    return 1.0, word


def behind(line: str, end: int) -> Unit | None:
    """Return the unit that follows a number which ends at ``end``, or None."""
    match = _BEHIND.match(line, end)
    unit = parse(match[1]) if match is not None else None
    return None if match is None or (unit and unit.item is None and _LABEL.match(line, match.end())) else unit


def duration(text: str) -> float | None:
    """Return the seconds of ``1:05`` or ``1m05s``, or None for any other text."""
    match = _CLOCK.fullmatch(text) or _LETTERS.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = match.groups()
    return 3600 * int(hours or 0) + 60 * int(minutes) + float(seconds)


def variants(unit: Unit) -> str:
    """Return an expression for ``unit`` and all others that the same number may have, by its speed."""
    if unit.item is None:
        return rf"(?:{_TIME}){_END}"
    item = re.escape(unit.item)
    return rf"(?:(?:{_TIME}){_OF}{item}|[kKMGT]?{item}{_OF}(?:{_TIME})){_END}"


# A group's end in a regular expression, the blanks behind it, and the unit behind these, as it is written there.
_GAP = re.compile(r"(?:(?: |\\s|\\ |\[ \])[*+?]?)*")
_WRITTEN = re.compile(rf"((?:{UNIT.replace(_END, '')}))(?![\w/*+?{{])")


def written(expression: str, close: int) -> tuple[int, int, Unit] | None:
    """Find the unit that a regular expression has behind its group, which closes before ``close``.

    Returns where the unit begins and ends, and what it is; None where no unit stands there as plain text.
    """
    gap = _GAP.match(expression, close)
    begin = gap.end() if gap is not None else close
    match = _WRITTEN.match(expression, begin)
    unit = parse(match[1]) if match is not None else None
    return (begin, begin + len(unit.text), unit) if unit is not None else None


def group(expression: str) -> tuple[int, int] | None:
    """Return where the only capturing group of a regular expression begins and ends, or None if it has none."""
    opened: list[int | None] = []
    at = 0
    while at < len(expression):
        sign = expression[at]
        if sign == "\\":
            at += 1
        elif sign == "[":
            at += 2 if expression[at + 1 : at + 2] == "^" else 1
            at += 1 if expression[at : at + 1] == "]" else 0
            while at < len(expression) and expression[at] != "]":
                at += 2 if expression[at] == "\\" else 1
        elif sign == "(":
            plain = expression[at + 1 : at + 2] != "?" or expression[at + 1 : at + 4] == "?P<"
            opened.append(at if plain else None)
        elif sign == ")" and opened and (begin := opened.pop()) is not None:
            return begin, at + 1
        at += 1
    return None
