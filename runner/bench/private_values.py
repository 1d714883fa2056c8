"""Keep the values of the caller's variables, which may be secrets, out of what is recorded. Names stay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.worker.performance_variables import PRELOAD, preloaded

# A shorter value can't be told from other text, and hides nothing.
SHORTEST = 6
CALLERS = "the caller's value"


def hidden(document: Mapping[str, Any], kept: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, Any]:
    """What is recorded of a worker, without the values that it has from the caller.

    Of evidence the variables that are as the caller has them (``inherited``) are left out, and of LD_PRELOAD the
    libraries that the user ``kept``; the values of variables that the user kept are replaced by their names wherever
    they stand. What a profile, or a command itself, sets stays.
    """
    secrets = {value: name for name, value in kept.items() if len(value) >= SHORTEST}
    secrets |= dict.fromkeys(preloaded(kept.get(PRELOAD, "")), PRELOAD)
    longest_first = dict(sorted(secrets.items(), key=lambda pair: -len(pair[0])))
    callers = {**inherited, **kept}
    return {key: _hidden(value, longest_first, callers, kept) for key, value in document.items()}


def _hidden(value: Any, secrets: Mapping[str, str], callers: Mapping[str, str], kept: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return text(value, secrets)
    if isinstance(value, dict):
        if isinstance(value.get("sensitive"), dict):
            value = {**value, "sensitive": _set_otherwise(value["sensitive"], callers, kept)}
        elif str(value.get("key", "")).startswith("variable "):
            value = _check(value, kept)
        # also where a library lists the settings that it has from its variables
        shown = {key: CALLERS if key in kept and str(inner) == kept[key] else inner for key, inner in value.items()}
        return {text(key, secrets): _hidden(inner, secrets, callers, kept) for key, inner in shown.items()}
    if isinstance(value, list | tuple):
        return [_hidden(inner, secrets, callers, kept) for inner in value]
    return value


def text(said: Any, secrets: Mapping[str, str]) -> Any:
    """A text with names in the place of values; ``secrets`` has the names by the values."""
    if isinstance(said, str):
        for value, name in secrets.items():
            if value in said:
                said = said.replace(value, f"${name}")
    return said


def _set_otherwise(given: Mapping[str, str], callers: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """The variables that are not as the caller has them; of LD_PRELOAD what is not the caller's."""
    found = {name: value for name, value in given.items() if callers.get(name) != value}
    if PRELOAD in found and PRELOAD in kept:
        own = {*preloaded(kept[PRELOAD])}
        found[PRELOAD] = ":".join(entry for entry in preloaded(found[PRELOAD]) if entry not in own)
        if not found[PRELOAD]:
            del found[PRELOAD]
    return found


def _check(check: Mapping[str, Any], kept: Mapping[str, str]) -> dict[str, Any]:
    """A check of a variable, as ``variable OMP_NUM_THREADS (process 7)``: it may have expected the caller's value."""
    name = str(check["key"]).split()[1]
    value = kept.get(name)
    return {key: CALLERS if value is not None and inner == value else inner for key, inner in check.items()}
