"""Turn the texts of the command line into values, with a message that says what would be right."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

from envkit.cli.messages import NoUnit, OptionRefused
from envkit.cli.parser import BadValue
from envkit.common.errors import InputError
from envkit.common.suggestion import suggestion
from envkit.messages import Message

_UNITS = {"s": 1, "m": 60, "h": 3600}
_HOURS = {"h": 1, "d": 24, "w": 168}
# Options whose value is a number of seconds.
DURATIONS = ("budget", "timeout", "prove", "watch", "time_limit", "start_within")


def duration(text: str) -> float:
    """``60s``, ``4m`` or ``1h`` as seconds; must be above 0 and have a unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    number = float(match[1]) if match else 0.0
    if match and not match[2] and 0 < number < math.inf:
        raise BadValue(NoUnit(match[1]))
    seconds = number * _UNITS.get(match[2], 0) if match else 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time above 0; write for example 60s, 4m or 1h")
    return seconds


def share(text: str) -> float:
    """``4%`` or ``0.04`` as 0.04; must be above 0 and below 1."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    value = float(match.group(1)) / (100 if match.group(2) else 1) if match else 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share between 0 and 1; write for example 4% or 0.04")
    return value


def count(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def node_names(text: str) -> str:
    """``node[1-8]``: names of nodes, as Slurm takes them."""
    if not text.strip(", "):
        raise argparse.ArgumentTypeError(f"'{text}' names no node; write for example node1,node2")
    return text


def moment(text: str) -> datetime:
    """``2026-11-01`` as the beginning of that day, ``12h``, ``7d`` or ``4w`` as so long ago; in local time."""
    match = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    try:
        if match:
            return datetime.now() - timedelta(hours=int(match.group(1)) * _HOURS[match.group(2)])
        return datetime.strptime(text.strip(), "%Y-%m-%d")
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no date; write for example 2026-11-01, 12h, 7d or 4w") from None


def counts(least: int) -> Callable[[str], tuple[int, ...]]:
    """For ``0,2,4``: different whole numbers, each ``least`` or more, in the order in which they are given."""

    def parse(text: str) -> tuple[int, ...]:
        words = text.split(",")
        if not all(word.isdecimal() and int(word) >= least for word in words):
            wanted = f"whole numbers from {least} on; write them as 1,2,4"
            raise argparse.ArgumentTypeError(f"'{text}' is no list of {wanted}")
        return tuple(dict.fromkeys(map(int, words)))

    return parse


def words_of(known: Collection[str], what: str) -> Callable[[str], tuple[str, ...]]:
    """For ``fork,spawn``: different words of those that are ``known``, in the order in which they are given."""

    def parse(text: str) -> tuple[str, ...]:
        for word in text.split(","):
            if word not in known:
                there = ", ".join(known)
                raise argparse.ArgumentTypeError(f"no {what} '{word}'{suggestion(word, known)}; there are: {there}")
        return tuple(dict.fromkeys(text.split(",")))

    return parse


def option(name: str) -> str:
    """The option whose value argparse keeps under ``name``."""
    if name == "user_command":
        return "the command after --"
    return f"--{name.removeprefix('user_').replace('_', '-')}"


def words(given: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """The options that argparse keeps under ``names``, as they were given."""
    found = []
    for name in names:
        value = getattr(given, name)
        if isinstance(value, bool):
            found += [option(name)] if value else []
            continue
        value = f"{value:g}s" if name in DURATIONS and value is not None else value
        for one in value if isinstance(value, list) else [value]:
            if one is not None:  # one that begins with a dash would be taken for another option
                found += [f"{option(name)}={one}"] if str(one).startswith("-") else [option(name), str(one)]
    return found


def refuse(given: argparse.Namespace, names: Iterable[str], why: Message | str) -> None:
    """Raise InputError for an option, or a PROFILE, that was given and is among ``names``; ``why`` is a clause."""
    for name in names:
        if vars(given).get(name) not in (None, False, []):
            raise InputError(OptionRefused("PROFILE" if name == "profile" else option(name), why))


def refuse_others(given: argparse.Namespace, allowed: Collection[str], why: Message | str) -> None:
    """``refuse`` all that are not ``allowed``."""
    refuse(given, [name for name in vars(given) if name not in allowed], why)
