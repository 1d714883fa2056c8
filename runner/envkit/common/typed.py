"""Hold data from outside against the annotations of what is made of it: a dataclass, or a typed dictionary."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from envkit.common.file_messages import OtherType
from envkit.messages import Message, MessageError

Made = TypeVar("Made")
Check = Callable[[Any], bool]


class Misfit(MessageError, ValueError):
    """Raised for a value of another type than its annotation says."""


def checked(made: Made) -> Made:
    """Return an instance of a dataclass whose fields have their types. Raise Misfit that names the first other one."""
    kind: Any = type(made)
    wrong = next((name for name, holds in _checks(kind).items() if not holds(getattr(made, name))), None)
    if wrong is not None:
        raise Misfit(OtherType(wrong))
    return made


def require(document: Mapping[str, Any], kind: type) -> None:
    """Raise Misfit that names the first key of a document whose value is not as the TypedDict ``kind`` says.

    A key that is missing, or that ``kind`` does not know, is no matter here.
    """
    checks = _checks(kind)
    wrong = next((name for name, one in document.items() if name in checks and not checks[name](one)), None)
    if wrong is not None:
        raise Misfit(OtherType(wrong))


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type. A whole number is a float too, and true is no number.

    A tuple may come as a list, as JSON has none.
    """
    return _check(hint)(value)


@cache
def _check(hint: Any, loose: bool = False) -> Check:
    """Return what tells whether a value is of the type: made once, as records have thousands of values.

    If it is ``loose``, a fraction may stand for a whole number, as in means over several processes.
    """
    plain = _plain(hint, loose)
    if plain is not None:
        return lambda value: type(value) in plain
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin in (typing.Union, types.UnionType):
        several = [_check(one, loose) for one in inner]
        return lambda value: any(holds(value) for holds in several)
    if origin is dict:
        keys, values = (_each(one, loose) for one in inner)
        return lambda value: type(value) is dict and keys(value) and values(value.values())
    return _of_list(origin, inner, loose) if origin is not None else _of_class(hint)


def _of_list(origin: Any, inner: tuple[Any, ...], loose: bool) -> Check:
    kinds = (list, tuple) if origin is tuple else (list,)
    if origin is tuple and inner[-1] is not Ellipsis:
        checks = [_check(one, loose) for one in inner]
        return lambda value: (
            type(value) in kinds
            and len(value) == len(checks)
            and all(holds(one) for holds, one in zip(checks, value, strict=True))
        )
    each = _each(inner[0], loose)
    return lambda value: type(value) in kinds and each(value)


def _of_class(hint: Any) -> Check:
    if hint is Message or issubclass(hint, Enum):  # who restored it has checked it
        return lambda value: isinstance(value, hint)
    checks = _checks(hint)
    if typing.is_typeddict(hint):
        return lambda value: (
            type(value) is dict and all(checks[name](one) for name, one in value.items() if name in checks)
        )
    return lambda value: isinstance(value, hint) and all(holds(getattr(value, name)) for name, holds in checks.items())


def _each(hint: Any, loose: bool) -> Check:
    """Return what tells whether all of several values are of the type; of plain types at once, as there may be many."""
    plain, check = _plain(hint, loose), _check(hint, loose)
    if plain is not None:
        return lambda values: plain.issuperset(map(type, values))
    return lambda values: all(map(check, values))


def _plain(hint: Any, loose: bool) -> frozenset[Any] | None:
    """Return the types of a value that has no parts, or of one of several such; None for others."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        several = [_plain(one, loose) for one in typing.get_args(hint)]
        found = [one for one in several if one is not None]
        return frozenset().union(*found) if len(found) == len(several) else None
    if hint is float or (hint is int and loose):
        return frozenset({int, float})
    return frozenset({hint}) if hint in (int, str, bool, type(None)) else None


@cache
def _checks(kind: Any) -> dict[str, Check]:
    """Return the checks of the fields of a dataclass, or the keys of a typed dictionary."""
    is_loose = typing.is_typeddict(kind)
    assert is_loose or dataclasses.is_dataclass(kind), kind
    return {name: _check(hint, is_loose) for name, hint in typing.get_type_hints(kind).items()}
