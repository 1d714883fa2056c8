"""Render messages as English. Only what prints, or writes a page, imports this module.

In a template:

- ``{field}`` is the field's value; of a message its text, of a list its items as ``a, b and c``.
- ``{field:FORM}`` writes it in a form: ``{seconds:duration}``, ``{bytes:size}``,
  ``{share:percent}``, ``{speedup:ratio}``, ``{number:all}``, ``{items:or}``, ``{items:quoted}``, ``{items:list}``,
  ``{argv:command}``; other forms are Python's, such as ``{ratio:.2f}``.
- ``{number:count NOUN}`` is ``1 node`` or ``2 nodes``; ``{number:count process|processes}`` names an irregular plural.
- ``[text with {field}]`` is left out if a field in it is None or empty. ``[[`` and ``]]`` are brackets.
"""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Callable, Iterable, Mapping, Sequence

from envkit.common.printable import harmless
from envkit.messages import Message, message_of

_OPTIONAL = re.compile(r"(?<!\[)\[(?!\[)(.*?)(?<!\])\](?!\])", re.DOTALL)


def text(message: Message | str) -> str:
    """Return a message, or a caption of a catalogue, in one line of English that is safe to print on a terminal.

    Characters that a terminal would act upon, in values that come from elsewhere, become escapes such as ``\\x1b``.
    """
    if isinstance(message, str):
        return harmless(message)
    return harmless(" ".join(_filled(message.template, message.values()).splitlines()))


def text_of(error: Exception) -> str:
    """Return the text of an exception's message, or of the exception if it carries none."""
    return text(message_of(error))


def _filled(template: str, values: Mapping[str, object]) -> str:
    def optional(match: re.Match[str]) -> str:
        names = [name for _, name, _, _ in string.Formatter().parse(match[1]) if name]
        return match[1] if all(values[name] is not None and values[name] not in ("", (), []) for name in names) else ""

    kept = _OPTIONAL.sub(optional, template).replace("[[", "[").replace("]]", "]")
    return _Formatter().vformat(kept, (), values)


class _Formatter(string.Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        name, _, noun = format_spec.partition(" ")
        if name == "count":
            singular, _, plural = noun.partition("|")
            return f"{value:,} {singular}" if value == 1 else f"{value:,} {plural or singular + 's'}"
        if name in NUMBERS:
            assert isinstance(value, int | float), f"{format_spec} is the form of a number, not of {value!r}"
            return NUMBERS[name](value)
        if name in LISTS:
            assert isinstance(value, Iterable), f"{format_spec} is the form of a list, not of {value!r}"
            return LISTS[name](value)
        if not format_spec:
            return _plainly(value)
        return format(value, format_spec)


def _plainly(value: object) -> str:
    if isinstance(value, Message):
        return text(value)
    if isinstance(value, list | tuple):
        return joined([_plainly(item) for item in value], "and")
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def joined(words: Sequence[str], conjunction: str) -> str:
    """Return ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {conjunction} {words[-1]}" if words else ""


def duration(seconds: float) -> str:
    """Return a duration with one unit, or two: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    minutes, more = divmod(rounded, 60)
    if minutes < 60:
        return f"{minutes} min {more} s" if more else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def size(number: float) -> str:
    """Return a number of bytes in the largest binary unit that leaves one or more."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:,.0f} {unit}" if unit == "bytes" or number >= 9.95 else f"{number:.1f} {unit}"


def percent(share: float) -> str:
    """Return a share as ``12%``, below ten as ``7.5%``, and far below one as ``3.0e-05``."""
    if 0 < abs(share) < 0.0005:
        return f"{share:.1e}"
    return f"{share:.1%}" if abs(share) < 0.0995 else f"{share:,.0%}"


def ratio(value: float) -> str:
    """Return a ratio as ``1.66``, with as many digits more as tell it from 1: ``1.003``."""
    digits = next((digits for digits in (2, 3, 4) if f"{value:.{digits}f}" != f"{1:.{digits}f}"), 2)
    return f"{value:,.{digits}f}"


def everyone(number: float) -> str:
    """Return ``both`` or ``all 3``."""
    return "both" if number == 2 else f"all {number:,}"


def exact_percent(share: float) -> str:
    """Return a share that a user gave, as ``2%`` or ``0.5%``."""
    return f"{share * 100:.4g}%"


NUMBERS: Mapping[str, Callable[[float], str]] = {
    "all": everyone,
    "duration": duration,
    "size": size,
    "percent": percent,
    "exact_percent": exact_percent,
    "ratio": ratio,
}
LISTS: Mapping[str, Callable[[Iterable[object]], str]] = {
    "and": lambda items: joined([_plainly(item) for item in items], "and"),
    "or": lambda items: joined([_plainly(item) for item in items], "or"),
    "quoted": lambda items: joined([f"'{_plainly(item)}'" for item in items], "or"),
    "list": lambda items: ", ".join(_plainly(item) for item in items),
    "lines": lambda items: "; ".join(_plainly(item) for item in items),
    "command": lambda words: shlex.join(map(str, words)),
}
