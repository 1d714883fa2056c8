"""Options that many commands share, and values from the words of the command line, or messages about them."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

from envkit.cli.argument_messages import (
    AS_JSON,
    COMMAND,
    COUNT,
    DATE,
    LIMIT,
    SHARE,
    TIME,
    NoNodeNames,
    NotCounts,
    NotOfForm,
    NoUnit,
)
from envkit.cli.messages import REASONS, HasNoEffect
from envkit.cli.parser import BadValue, Parser
from envkit.common.errors import InputError
from envkit.common.messages import UnknownWord
from envkit.common.suggestion import nearest

_UNITS = {"s": 1, "m": 60, "h": 3600}
_HOURS = {"h": 1, "d": 24, "w": 168}
# Options whose value is a number of seconds.
DURATIONS = ("budget", "timeout", "watch", "time_limit", "start_within")


def duration(word: str) -> float:
    """Return ``60s``, ``4m`` or ``1h`` as seconds. Raise BadValue if it is not above 0 or has no unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", word.strip())
    number = float(match[1]) if match else 0.0
    if match and not match[2] and 0 < number < math.inf:
        raise BadValue(NoUnit(match[1]))
    seconds = number * _UNITS.get(match[2], 0) if match else 0.0
    if not 0 < seconds < math.inf:
        raise BadValue(NotOfForm(word, TIME))
    return seconds


def share(word: str) -> float:
    """Return ``4%`` or ``0.04`` as 0.04. Raise BadValue if it is not between 0 and 1."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", word.strip())
    value = float(match.group(1)) / (100 if match.group(2) else 1) if match else 0.0
    if not 0 < value < 1:
        raise BadValue(NotOfForm(word, SHARE))
    return value


def limit(word: str) -> float:
    """Return ``10%`` or ``0.1`` as 0.1, and ``150%`` as 1.5.

    Raise BadValue for anything else. A number above 1 needs the percent sign: it may be meant in percent, or in bytes.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", word.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else math.inf
    if match is None or value == math.inf or (value > 1 and not match[2]):
        raise BadValue(NotOfForm(word, LIMIT))
    return value


def count(word: str) -> int:
    """Return a whole number above 0. Raise BadValue for anything else."""
    if not word.isdecimal() or int(word) == 0:
        raise BadValue(NotOfForm(word, COUNT))
    return int(word)


def node_names(word: str) -> str:
    """Return names of nodes as Slurm takes them, such as ``node[1-8]``. Raise BadValue for an empty list."""
    if not word.strip(", "):
        raise BadValue(NoNodeNames(word))
    return word


def moment(word: str) -> datetime:
    """Return ``2026-11-01`` as the beginning of that day, ``12h``, ``7d`` or ``4w`` as so long ago, in local time.

    Raise BadValue for anything else.
    """
    match = re.fullmatch(r"(\d{1,5})([hdw])", word.strip())
    try:
        if match:
            return datetime.now() - timedelta(hours=int(match.group(1)) * _HOURS[match.group(2)])
        return datetime.strptime(word.strip(), "%Y-%m-%d")
    except (ValueError, OverflowError):
        raise BadValue(NotOfForm(word, DATE)) from None


def counts(least: int) -> Callable[[str], tuple[int, ...]]:
    """Return a parser of ``0,2,4``: different whole numbers, each ``least`` or more, in the given order."""

    def parse(word_list: str) -> tuple[int, ...]:
        words = word_list.split(",")
        if not all(word.isdecimal() and int(word) >= least for word in words):
            raise BadValue(NotCounts(word_list, least))
        return tuple(dict.fromkeys(map(int, words)))

    return parse


def words_of(choices: Collection[str], noun: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of ``fork,spawn``: different words of ``choices``, in the given order.

    ``noun`` is the noun for one of them.
    """

    def parse(word_list: str) -> tuple[str, ...]:
        for word in word_list.split(","):
            if word not in choices:
                raise BadValue(UnknownWord(noun, word, tuple(choices), nearest(word, choices)))
        return tuple(dict.fromkeys(word_list.split(",")))

    return parse


def option(name: str) -> str:
    """Return the option whose value argparse keeps under ``name``."""
    if name == "user_command":
        return COMMAND
    return f"--{name.removeprefix('user_').replace('_', '-')}"


def words(arguments: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """The options that argparse keeps under ``names``, as they were given."""
    typed = []
    for name in names:
        value = getattr(arguments, name)
        if isinstance(value, bool):
            typed += [option(name)] if value else []
            continue
        value = f"{value:g}s" if name in DURATIONS and value is not None else value
        for item in value if isinstance(value, list) else [value]:
            if item is not None:  # one that begins with a dash would be taken for another option
                typed += [f"{option(name)}={item}"] if str(item).startswith("-") else [option(name), str(item)]
    return typed


def no_effect(option: str, other: str, instead: str | None = None) -> HasNoEffect:
    """Return the message that ``option`` has no effect with ``other``, an option or what a command does."""
    return HasNoEffect(option, other, REASONS[other.partition("=")[0]], instead)


def refuse(arguments: argparse.Namespace, names: Iterable[str], other: str) -> None:
    """Raise InputError for an option, or a PROFILE, that was given and is among ``names``: it has no effect here.

    ``other`` is an option or a command, a key of ``envkit.cli.messages.REASONS``, which leaves it without effect.
    """
    for name in options_given(arguments, names):
        raise InputError(no_effect(name, other))


def refuse_others(arguments: argparse.Namespace, allowed: Collection[str], other: str) -> None:
    """``refuse`` all that are not ``allowed``."""
    refuse(arguments, [name for name in vars(arguments) if name not in allowed], other)


def is_value(value: object) -> bool:
    """Return whether an option was given, by the value that argparse has for it. 0, as of ``0%``, is a value."""
    return value is not None and value is not False and value != []


def options_given(arguments: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Return those options that were given of the ones that argparse keeps under ``names``."""
    there = [name for name in names if is_value(vars(arguments).get(name))]
    return ["PROFILE" if name == "profile" else option(name) for name in there]


def add_output_options(parser: Parser, json: str = AS_JSON) -> None:
    """Add --json and --quiet to a command that shows progress. ``json`` is the help of --json."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help=json)
    group.add_argument("-q", "--quiet", action="store_true", help="print no progress, only warnings and the result")


def is_quiet(arguments: argparse.Namespace) -> bool:
    """Return whether to show no progress: on request, or because stderr is read beside JSON."""
    return bool(arguments.quiet or arguments.json)


def add_redact_option(parser: Parser | argparse._ArgumentGroup, advanced: bool = False) -> None:
    """Add --redact: results that can be shared without the names of people and machines."""
    parser.add_argument("--redact", action="store_true", advanced=advanced,
                        help="hide who measured, and where: print HOST1, USER1, PATH1, COMMAND1")  # fmt: skip
