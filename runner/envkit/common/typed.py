"""Hold data from outside against the annotations of what is made of it: a dataclass, or a typed dictionary."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from envkit.common.file_messages import OtherType
from envkit.messages import MessageError

Made = TypeVar("Made")


class Misfit(MessageError, ValueError):
    """Raised for a value of another type than its annotation says."""


def checked(made: Made) -> Made:
    """Return an instance of a dataclass whose fields have their types. Raise Misfit that names the first other one."""
    kind: Any = type(made)
    wrong = next((name for name, hint in _hints(kind).items() if not fits(getattr(made, name), hint)), None)
    if wrong is not None:
        raise Misfit(OtherType(wrong))
    return made


def require(document: Mapping[str, Any], kind: type) -> None:
    """Raise Misfit that names the first key of a document whose value is not as the TypedDict ``kind`` says.

    A key that is missing, or that ``kind`` does not know, is no matter here.
    """
    hints = _hints(kind)
    wrong = next((name for name, one in document.items() if name in hints and not fits(one, hints[name])), None)
    if wrong is not None:
        raise Misfit(OtherType(wrong))


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type. A whole number is a float too, and true is no number."""
    if typing.get_origin(hint) is not None:
        return _fits_generic(value, typing.get_origin(hint), typing.get_args(hint))
    if typing.is_typeddict(hint):
        hints = _hints(hint)
        return isinstance(value, dict) and all(fits(one, hints[name]) for name, one in value.items() if name in hints)
    if _is_dataclass(hint):
        return isinstance(value, hint) and all(fits(getattr(value, name), one) for name, one in _hints(hint).items())
    return hint is Any or type(value) in ((int, float) if hint is float else (hint,))


def _fits_generic(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is dict:
        return isinstance(value, dict) and _all(value, inner[0]) and _all(value.values(), inner[1])
    return _fits_each(value, origin, inner)


def _fits_each(value: Any, kind: type, inner: tuple[Any, ...]) -> bool:
    """Return whether a list, or a tuple, which may come as a list, has items of these types."""
    if not isinstance(value, (list, tuple) if kind is tuple else list):
        return False
    if kind is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    return _all(value, inner[0])


def _all(values: Any, hint: Any) -> bool:
    """Return whether all values fit; of plain types at once, as there may be many."""
    if hint in (str, int, float, bool):
        return {*map(type, values)} <= ({int, float} if hint is float else {hint})
    return all(fits(one, hint) for one in values)


def _is_dataclass(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
