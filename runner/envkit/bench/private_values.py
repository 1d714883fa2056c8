"""Remove the values of the caller's variables from recorded events. They may be secrets. Names stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from envkit.bench.record_messages import CALLERS
from envkit.messages import Message, from_json
from envkit.worker.performance_variables import PRELOAD, preloaded

# Shorter values also occur in unrelated text, so text keeps them.
SHORTEST = 6
# Programs may print a part of a value, for example if a line was cut. Parts of so many characters are hidden, except
# those of a value that begins with a slash, because other paths begin alike. Shorter values are hidden as whole words.
FRAGMENT, SHORTEST_WORD = 8, 4
# Names of variables that hold a secret, kept or not.
NAMED_SECRET = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|(?:^|_)(?:JWT|PAT|AUTH|CREDENTIALS?|PASS))(?:_ID)?$", re.IGNORECASE
)
# What logs in by a URL: its password, or a token in the place of the user, which is longer than a user's name.
LOGIN = re.compile(r"://(?:[^/@\s:]*:([^/@\s]{8,})|([^/@\s:]{20,}))@")
# Keys whose texts programs printed. PROBLEM holds a message as JSON, whose fields can quote them.
PRINTED, PROBLEM = ("stderr", "reason"), "problem"
# Keys of a message's JSON whose values the kit chooses. They stay, or no reader would know the message.
OF_MESSAGE = ("code", "severity")


def hidden(document: Mapping[str, Any], kept: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, Any]:
    """Return an event's fields without the values that the worker got from the caller.

    Drop evidence of variables that equal the caller's (``inherited``), and the libraries of a ``kept`` LD_PRELOAD.
    Replace values of ``kept`` variables, and other secrets of the caller, by names everywhere. Keep values that a
    profile or the command sets.
    """
    known = _known(kept, inherited)
    secrets = {value: name for value, name in known.items() if len(value) >= SHORTEST}
    secrets |= dict.fromkeys(preloaded(kept.get(PRELOAD, "")), PRELOAD)
    longest_first = dict(sorted(secrets.items(), key=lambda pair: -len(pair[0])))
    callers = {**inherited, **kept}
    found = {key: _hidden(value, longest_first, callers, kept) for key, value in document.items() if key != PROBLEM}
    found = {key: _printed(value, known) if key in PRINTED else value for key, value in found.items()}
    if PROBLEM in document:
        found[PROBLEM] = _problem(document[PROBLEM], longest_first, known)
    return found


def in_message(message: Message, kept: Mapping[str, str], inherited: Mapping[str, str]) -> Message:
    """Return ``message`` with each value of a caller's variable replaced by the variable's name."""
    changed: dict[str, Any] = {}
    for name, value in message.values().items():
        if isinstance(value, Message):
            changed[name] = from_json(hidden({PROBLEM: value.to_json()}, kept, inherited)[PROBLEM])
        elif isinstance(value, str):
            changed[name] = printed(value, kept, inherited)
    return message.replace(**changed)


def printed(said: str, kept: Mapping[str, str], inherited: Mapping[str, str]) -> str:
    """Replace values of the caller's variables by names in what a program printed."""
    return str(hidden({"stderr": said}, kept, inherited)["stderr"])


def _known(kept: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the names of variables by the values to hide: all ``kept`` ones, and the secrets among ``inherited``."""
    found: dict[str, str] = {}
    for name, value in inherited.items():
        if NAMED_SECRET.search(name) and len(value) >= FRAGMENT and not value.startswith("/"):
            found[value] = name
        for login in map("".join, LOGIN.findall(value)):
            found |= {login: name, unquote(login): name}
    return found | {value: name for name, value in kept.items()}


def _problem(value: Any, secrets: Mapping[str, str], known: Mapping[str, str]) -> Any:
    """Hide values in all fields of a message's JSON, and of messages in it, as in what a program printed."""
    if isinstance(value, dict):
        return {key: inner if key in OF_MESSAGE else _problem(inner, secrets, known) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_problem(inner, secrets, known) for inner in value]
    return _printed(text(value, secrets), known)


def _printed(said: Any, known: Mapping[str, str]) -> Any:
    """Replace parts of values, and short values, in what a program printed."""
    if not isinstance(said, str):
        return said
    for value, name in known.items():
        if SHORTEST_WORD <= len(value) < SHORTEST:
            said = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"${name}", said)
        elif len(value) > FRAGMENT and not value.startswith("/"):
            # without the scheme of a URL, with which others begin too
            said = _without_fragments(said, value.partition("://")[2] or value, f"${name}")
    return said


def _without_fragments(said: str, value: str, instead: str) -> str:
    """Replace each stretch of ``said`` in which every FRAGMENT characters are in ``value`` too."""
    known = {value[at : at + FRAGMENT] for at in range(len(value) - FRAGMENT + 1)}
    parts, begin, at = [], 0, 0
    while at <= len(said) - FRAGMENT:
        if said[at : at + FRAGMENT] not in known:
            at += 1
            continue
        end = at + 1
        while said[end : end + FRAGMENT] in known:
            end += 1
        parts += [said[begin:at], instead]
        begin = at = end - 1 + FRAGMENT
    return "".join([*parts, said[begin:]])


def _hidden(value: Any, secrets: Mapping[str, str], callers: Mapping[str, str], kept: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return text(value, secrets)
    if isinstance(value, dict):
        if isinstance(value.get("sensitive"), dict):
            value = {**value, "sensitive": _set_otherwise(value["sensitive"], callers, kept)}
        elif str(value.get("key", "")).startswith("variable "):
            value = _check(value, kept)
        # libraries list the settings that they read from variables
        shown = {key: CALLERS if key in kept and str(inner) == kept[key] else inner for key, inner in value.items()}
        return {text(key, secrets): _hidden(inner, secrets, callers, kept) for key, inner in shown.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner, secrets, callers, kept) for inner in value]
    return value


def text(said: Any, secrets: Mapping[str, str]) -> Any:
    """Replace values by names in a text; ``secrets`` maps values to names."""
    if isinstance(said, str):
        for value, name in secrets.items():
            if value in said:
                said = said.replace(value, f"${name}")
    return said


def _set_otherwise(given: Mapping[str, str], callers: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that differ from the caller's, and LD_PRELOAD without the caller's libraries."""
    found = {name: value for name, value in given.items() if callers.get(name) != value}
    if PRELOAD in found and PRELOAD in kept:
        own = {*preloaded(kept[PRELOAD])}
        found[PRELOAD] = ":".join(entry for entry in preloaded(found[PRELOAD]) if entry not in own)
        if not found[PRELOAD]:
            del found[PRELOAD]
    return found


def _check(check: Mapping[str, Any], kept: Mapping[str, str]) -> dict[str, Any]:
    """Hide the caller's value in the check of a variable, such as ``variable OMP_NUM_THREADS (process 7)``."""
    name = str(check["key"]).split()[1]
    value = kept.get(name)
    return {key: CALLERS if value is not None and inner == value else inner for key, inner in check.items()}
