"""Read the problem of a recorded event, which is a message as JSON."""

from __future__ import annotations

import types
import typing
from typing import Any

from envkit.bench.messages import WorkerEnded, WorkerReported
from envkit.bench.problem_messages import UnknownProblem
from envkit.bench.record import Event
from envkit.checks import messages as _of_checks
from envkit.engines import messages as _of_engines
from envkit.messages import Message, from_json
from envkit.worker import messages as _of_workers

# from_json knows the classes of modules that were imported: these have all that a record can hold.
KNOWN = (WorkerEnded, WorkerReported, _of_checks, _of_engines, _of_workers)


def problem_of(event: Event) -> Message:
    """Return the ``problem`` of an event; UnknownProblem if this version does not know its code or its fields."""
    return restored(event["problem"])


def restored(document: Any) -> Message:
    """Return the message that a record has as ``document``; UnknownProblem if this version can't read it."""
    try:
        message = from_json(document)
    except (AttributeError, KeyError, TypeError):
        message = None
    if message is not None and _has_its_types(message):
        return message
    code = document.get("code") if isinstance(document, dict) else None
    return UnknownProblem(code if isinstance(code, str) else None)


def _has_its_types(message: Message) -> bool:
    """Return whether all fields are of the annotated types. A record may have been edited."""
    hints = typing.get_type_hints(type(message))
    return all(_fits(value, hints[name]) for name, value in message.values().items())


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, typing.get_args(hint)[0]) for one in value)
    if isinstance(value, Message):
        return isinstance(value, hint) and _has_its_types(value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint
