"""Go on with a record: by itself if it carries this user's seal, else by the command, which the user gives again.

The kit prepares a command that is given again as it prepares a new run, from its options and this machine. It compares
the record with the result. The record itself adds numbers only, such as the seed and the lengths of samples.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envkit.bench import record, seal
from envkit.bench.context import ExecutionContext, require_same_machine, require_same_values
from envkit.bench.record import Event
from envkit.bench.record_messages import (
    ENVIRONMENTS,
    KEPT_VARIABLES,
    CommandNeeded,
    Difference,
    NoSeconds,
    NoWholeNumber,
    OtherCommand,
    SealMissing,
    SealOfAnother,
)
from envkit.bench.study import Study
from envkit.common.errors import InputError
from envkit.common.folders import quoted
from envkit.messages import Message, MessageError
from envkit.profiles.environment import Environment

# Messages name so many differences, and count the rest.
NAMED = 6
# Upper bounds of numbers that later events give.
MOST_STEPS, MOST_BLOCKS, MOST_AT_ONCE = 10**8, 10**6, 4096
MISSING = "missing"


class BadNumber(MessageError, ValueError):
    """A record has a number that no run writes."""


def no_seal(folder: Path, first: Event, again: str) -> InputError:
    """Return the error for a record without this user's seal; ``again`` is the command to give."""
    return InputError(CommandNeeded(str(folder), _unsealed(first), f"{again} --resume {quoted(folder)}"))


def _unsealed(first: Event) -> Message:
    return SealMissing() if first.get(seal.KEY) is None else SealOfAnother()


def require_same(folder: Path, first: Event, differences: Sequence[Difference]) -> None:
    """Raise InputError that names the ``differences`` between the command and the record in ``folder``, if any."""
    if differences:
        more = len(differences) - NAMED if len(differences) > NAMED else None
        unsealed = None if seal.is_good(first) else _unsealed(first)
        raise InputError(OtherCommand(str(folder), tuple(differences[:NAMED]), more, unsealed))


def require_same_run(
    folder: Path, first: Event, study: Study, environments: Mapping[str, Environment], context: ExecutionContext
) -> None:
    """Raise InputError if the prepared run differs from the record's; ``first`` is its first event."""
    with record.reading(folder):
        then = [without_folder(first["study"]), first["environments"], sorted(first["allowed_variables"])]
    prepared = {name: environment.to_json() for name, environment in environments.items()}
    now = [without_folder(study.to_json()), prepared, sorted(context.kept)]
    names = ("", ENVIRONMENTS, KEPT_VARIABLES)
    compared = zip(then, now, names, strict=True)
    require_same(folder, first, [line for comparison in compared for line in differences(*comparison)])
    require_same_machine(folder, first, context.seen)
    if seal.is_good(first):  # another user's digests tell nothing
        require_same_values(folder, first, context.kept)


def without_folder(study: Event) -> Event:
    """Return a study that names profiles beside the record by file name, so that the folder may have moved.

    Arms come first, as other differences follow from them. The variables that are kept are compared by themselves.
    """
    arms = [dict(arm) for arm in study["arms"]]
    for arm in arms[2:] if study["ablated"] else ():
        arm["file"] = arm["file"] and Path(arm["file"]).name
    others = {name: value for name, value in study.items() if name not in ("arms", "contrasts", "keep_env")}
    return {"arms": arms, **others, "contrasts": study["contrasts"]}


def differences(then: object, now: object, name: str = "") -> list[Difference]:
    """List the differences of two documents, each named by its key, such as ``stopping.budget_s``."""
    return [*_differences(json.loads(json.dumps(then)), json.loads(json.dumps(now)), name)]


def _differences(then: object, now: object, name: str) -> Iterator[Difference]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*then, *now]):
            here = f"{name}.{key}" if name else str(key)
            yield from _differences(then.get(key, MISSING), now.get(key, MISSING), here)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, pair in enumerate(zip(then, now, strict=True)):
            yield from _differences(*pair, f"{name}[{number}]")
    elif then != now or isinstance(then, bool) != isinstance(now, bool):
        yield Difference(name, _shown(then), _shown(now))


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 100 else f"{text[:60]}…{text[-35:]}"


def seed_of(folder: Path, study: Event) -> int:
    """Return the seed in a recorded study. Raise InputError if it is no number."""
    with record.reading(folder):
        return _number("seed", study["seed"], 0, 2**63)


def lengths_of(study: Event) -> tuple[int, int, float]:
    """Return steps, blocks and budget (seconds) of a recorded study. Raise ValueError or LookupError."""
    steps = {_number("steps", length["steps"], 0, MOST_STEPS) for length in study["workloads"].values()}
    (of_all,) = steps
    budget_s = study["stopping"]["budget_s"]
    if isinstance(budget_s, bool) or not isinstance(budget_s, int | float) or not 0 <= budget_s < math.inf:
        raise BadNumber(NoSeconds("budget_s", repr(budget_s)))
    return of_all, _number("blocks", study["stopping"]["blocks"], 0, MOST_BLOCKS), budget_s


def require_numbers(folder: Path, events: Sequence[Event]) -> None:
    """Raise InputError if the fixed lengths are no numbers in range. Workers get them, and no seal covers them."""
    with record.reading(folder):
        for event in events:
            if event["event"] == "lengths":
                _number("together", event["together"], 1, MOST_AT_ONCE)
                _number("skipped_steps", event["skipped_steps"], 0, MOST_STEPS)
                for name in ("steps", "warmup_steps"):
                    for steps in event.get(name, {}).values():
                        _number(name, steps, 0, MOST_STEPS)
            elif event["event"] in ("design", "dropped"):
                for blocks in (event["planned_blocks"], *event["looks"], event.get("block", 0)):
                    _number("looks", blocks, 0, MOST_BLOCKS)


def _number(name: str, value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise BadNumber(NoWholeNumber(name, repr(value), least, most))
    return value
