"""Read the problem of a recorded event, which is a message as JSON."""

from __future__ import annotations

import importlib
import importlib.util
import types
import typing
from functools import cache
from pathlib import Path
from typing import Any

from envkit.bench.events import Failure, ReferenceKernelFailure
from envkit.bench.problem_messages import UnknownProblem
from envkit.messages import Message, from_json

# The packages whose messages a record can hold.
PACKAGES = ("advice", "bench", "checks", "cli", "cluster", "common", "engines", "profiles", "tuning", "worker")


def problem_of(event: Failure | ReferenceKernelFailure) -> Message:
    """Return the ``problem`` of an event; UnknownProblem if this version does not know its code or its fields."""
    return restored(event.problem)


def restored(document: object) -> Message:
    """Return the message that a record has as ``document``; UnknownProblem if this version can't read it."""
    if not isinstance(document, dict) or not isinstance(code := document.get("code"), str):
        return UnknownProblem(None)
    load_catalogue(code.partition(".")[0])
    try:
        message = from_json(document)
    except (AttributeError, KeyError, TypeError):
        return UnknownProblem(code)
    return message if _has_its_types(message) else UnknownProblem(code)


@cache
def load_catalogue(package: str) -> None:
    """Import the modules of messages that belong to ``package``: ``from_json`` knows the classes of those alone."""
    spec = importlib.util.find_spec(f"envkit.{package}") if package in PACKAGES else None
    if spec is None or spec.submodule_search_locations is None:
        return
    for root in map(Path, spec.submodule_search_locations):
        for file in root.rglob("*.py"):
            path_parts = file.relative_to(root).with_suffix("").parts
            if any(part.endswith("messages") for part in path_parts):
                importlib.import_module(".".join(("envkit", package, *path_parts)).removesuffix(".__init__"))


def _has_its_types(message: Message) -> bool:
    """Return whether all fields are of the annotated types. A record may have been edited."""
    hints = typing.get_type_hints(type(message))
    return all(_fits(value, hints[name]) for name, value in message.values().items())


def _fits(value: object, hint: object) -> bool:
    if hint in (Any, object):
        return True
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(item, typing.get_args(hint)[0]) for item in value)
    if isinstance(value, Message):
        return isinstance(hint, type) and isinstance(value, hint) and _has_its_types(value)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint
