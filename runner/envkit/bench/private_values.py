"""Remove the values of the caller's variables from recorded events and messages. They may be secrets. Names stay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from envkit.bench.record_messages import CALLERS
from envkit.messages import Message, from_json
from envkit.worker.performance_variables import LISTS, PRELOAD, preloaded, settings

# Shorter values also occur in unrelated text, so text keeps them.
SHORTEST = 6
# Programs may print a part of a value, for example if a line was cut. Parts of so many characters are hidden, except
# those of a value that begins with a slash, because other paths begin alike. Shorter values are hidden as whole words.
FRAGMENT, SHORTEST_WORD = 8, 4
# Keys whose texts programs printed. PROBLEM holds a message as JSON, whose fields can quote them.
PRINTED, PROBLEM = ("stderr", "reason"), "problem"
# Keys of a message's JSON whose values the kit chooses. They stay, or no reader would know the message.
OF_MESSAGE = ("code", "severity")
# Names of variables whose values are secrets, such as HF_TOKEN, but not TOKENIZERS_PARALLELISM. Workers inherit them
# without --keep-env.
OF_SECRET = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|(?:^|_)(?:\w*TOKEN|\w*SECRET|KEY|APIKEY|SECRETKEY|PASS|AUTH|PAT|CREDENTIALS?)|\w_PWD)$",
    re.IGNORECASE,
)
# The name and password in an address, and a path, which is no secret.
LOGIN, PATH = re.compile(r"://([^/?#\s]+)@"), re.compile(r"~?/[\w.-]+/")
# Shorter values, such as OPENAI_API_KEY=EMPTY, protect nothing.
SHORTEST_SECRET = 8


def hidden(document: Mapping[str, object], kept: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, object]:
    """Return an event's fields without the values that the worker got from the caller.

    Drop evidence of variables that equal the caller's (``inherited``), and the libraries of a ``kept`` LD_PRELOAD.
    Replace values of ``kept`` variables by their names everywhere. Keep values that a profile or the command sets.
    Replace passwords and tokens of other variables in what programs said; names that the kit chose stay.
    """
    callers = {**inherited, **kept}
    of_kept = {value: name for name, value in kept.items() if len(value) >= SHORTEST}
    of_kept |= dict.fromkeys(preloaded(kept.get(PRELOAD, "")), PRELOAD)
    of_kept |= {pair: name for name in LISTS.keys() & kept.keys() for pair in settings(name, kept[name]).values()}
    of_kept = _longest_first(of_kept)
    logins = _secrets(tuple(callers.items()))
    everything = _longest_first({**{value: name for name, value in logins}, **of_kept})
    printed_secrets = [*kept.items(), *logins]
    cleaned: dict[str, object] = {}
    for key, value in document.items():
        if key == PROBLEM:
            cleaned[key] = _problem(value, everything, printed_secrets)
            continue
        is_kits = isinstance(value, str) and key not in PRINTED
        hid = _hidden(value, of_kept if is_kits else everything, callers, kept)
        cleaned[key] = _printed(hid, printed_secrets) if key in PRINTED else hid
    return cleaned


def of_message(message: Message, kept: Mapping[str, str], inherited: Mapping[str, str]) -> Message:
    """Return ``message`` with each value of a caller's variable replaced by the variable's name."""
    changed: dict[str, object] = {}
    for name, value in message.values().items():
        if isinstance(value, Message):
            document = hidden({PROBLEM: value.to_json()}, kept, inherited)[PROBLEM]
            assert isinstance(document, dict), "a message's JSON is an object"
            changed[name] = from_json(document)
        elif isinstance(value, str):
            changed[name] = of_printed(value, kept, inherited)
    return message.replace(**changed)


def of_printed(printed: str, kept: Mapping[str, str], inherited: Mapping[str, str]) -> str:
    """Replace values of the caller's variables by their names in what a program printed."""
    return str(hidden({"stderr": printed}, kept, inherited)["stderr"])


def _longest_first(secrets: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(secrets.items(), key=lambda pair: -len(pair[0])))


@lru_cache(maxsize=4)  # the same for every event of a run
def _secrets(callers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the name of each variable that holds a password, a token or an address with a login, and that secret.

    ``callers`` are the names and values of variables.
    """
    secrets = []
    for name, value in callers:
        if OF_SECRET.search(name) and len(value) >= SHORTEST_SECRET and not PATH.match(value):
            secrets.append((name, value))
        for login in LOGIN.findall(value):
            parts = (login, login.partition(":")[2])
            secrets += [(name, secret) for secret in parts if len(secret) >= SHORTEST_SECRET]
    return tuple(secrets)


def _problem(value: object, secrets: Mapping[str, str], kept: Iterable[tuple[str, str]]) -> object:
    """Hide values in all fields of a message's JSON, and of messages in it, as in what a program printed."""
    if isinstance(value, dict):
        return {key: inner if key in OF_MESSAGE else _problem(inner, secrets, kept) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_problem(inner, secrets, kept) for inner in value]
    return _printed(text(value, secrets), kept)


def _printed(printed: object, kept: Iterable[tuple[str, str]]) -> object:
    """Replace parts of values, and short values, in what a program printed; ``kept`` are names and values."""
    if not isinstance(printed, str):
        return printed
    for name, value in kept:
        if SHORTEST_WORD <= len(value) < SHORTEST:
            printed = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", f"${name}", printed)
        elif len(value) > FRAGMENT and not value.startswith("/"):
            printed = _without_fragments(printed, value, f"${name}")
    return printed


def _without_fragments(printed: str, value: str, instead: str) -> str:
    """Replace each stretch of ``printed`` in which every FRAGMENT characters are in ``value`` too."""
    fragments = {value[at : at + FRAGMENT] for at in range(len(value) - FRAGMENT + 1)}
    pieces, begin, at = [], 0, 0
    while at <= len(printed) - FRAGMENT:
        if printed[at : at + FRAGMENT] not in fragments:
            at += 1
            continue
        end = at + 1
        while printed[end : end + FRAGMENT] in fragments:
            end += 1
        pieces += [printed[begin:at], instead]
        begin = at = end - 1 + FRAGMENT
    return "".join([*pieces, printed[begin:]])


def _hidden(value: object, secrets: Mapping[str, str], callers: Mapping[str, str], kept: Mapping[str, str]) -> object:
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


def text(content: object, secrets: Mapping[str, str]) -> object:
    """Replace values by names in a text; ``secrets`` maps values to names."""
    if isinstance(content, str):
        for value, name in secrets.items():
            if value in content:
                content = content.replace(value, f"${name}")
    return content


def _set_otherwise(variables: Mapping[str, str], callers: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that differ from the caller's, and LD_PRELOAD without the caller's libraries."""
    differing = {name: value for name, value in variables.items() if callers.get(name) != value}
    if PRELOAD in differing and PRELOAD in kept:
        callers_libraries = {*preloaded(kept[PRELOAD])}
        differing[PRELOAD] = ":".join(
            entry for entry in preloaded(differing[PRELOAD]) if entry not in callers_libraries
        )
        if not differing[PRELOAD]:
            del differing[PRELOAD]
    return differing


def _check(check: Mapping[str, object], kept: Mapping[str, str]) -> dict[str, object]:
    """Hide the caller's value in the check of a variable, such as ``variable OMP_NUM_THREADS (process 7)``."""
    name = str(check["key"]).split()[1]
    value = kept.get(name)
    return {key: CALLERS if value is not None and inner == value else inner for key, inner in check.items()}
