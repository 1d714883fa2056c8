"""Messages: everything the kit tells its users, as data, of which ``envkit.rendering`` alone makes text.

Each package declares its own in its ``messages.py``::

    class UnknownKey(Message):
        template = "{file}: unknown key '{key}'[; did you mean '{suggestion}'?]"

        file: str
        key: str
        suggestion: str | None = None

Its code is ``profiles.unknown-key``, by the package and the name of the class. ``Message`` is the base of errors.
``Note``, ``Caution`` and ``Advice`` are the bases of other severities.

Code compares classes, codes and fields. No code reads a sentence, so that any sentence can be improved. The worker,
which has the standard library alone, sends a message as JSON (``to_json``, ``from_json``). This module also runs inside
users' programs, for the evidence hook, so it must work in Python 3.8.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**options: object) -> Callable[[type], type]:
        return lambda decorated: decorated


_CLASSES: dict[str, type[Message]] = {}
_NEXT_WORD = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # in a class's name


class Severity(str, Enum):
    """How much a message matters. The values are those of JSON documents."""

    ERROR = "error"  # refused, failed or not in effect
    WARNING = "warning"  # it costs speed, memory, accuracy or certainty
    NOTE = "note"  # worth knowing
    ADVICE = "advice"  # something to do next


@dataclass_transform(frozen_default=True)
class Message:
    """Base class. A subclass has annotated fields, which hold plain data or other messages, as a frozen dataclass has.

    ``code`` is ``PACKAGE.WHAT-IS-WRONG``, stable and unique, and derived from the module and the class's name unless
    the class has another. ``template`` is English for ``envkit.rendering``, whose docstring lists what can stand in it.
    TypeError for a code that is taken, or a class without a template, unless it is ``abstract``.

    It is no dataclass, because making hundreds of these takes longer than all else that a short command does.
    """

    code: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.ERROR
    template: ClassVar[str] = ""
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, abstract: bool = False, **options: object) -> None:
        super().__init_subclass__(**options)
        # before Python 3.10 a class without annotations has those of its base
        inherits = any(cls.__annotations__ is getattr(base, "__annotations__", None) for base in cls.__bases__)
        cls.FIELDS = (*cls.FIELDS, *(() if inherits else cls.__annotations__))
        if abstract:
            return
        if not cls.template:
            raise TypeError(f"{cls.__qualname__} needs a template")
        if "code" not in cls.__dict__:
            package = f"{cls.__module__}.".split(".")[1]
            cls.code = f"{package}.{_NEXT_WORD.sub('-', cls.__name__).lower()}"
        other = _CLASSES.setdefault(cls.code, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{other!r} and {cls!r} have the same code: {cls.code}")

    def __init__(self, *values: object, **named: object) -> None:
        fields = {**dict(zip(self.FIELDS, values)), **named}
        expected = {name for name in self.FIELDS if name in fields or not hasattr(type(self), name)}
        if fields.keys() != expected or len(fields) < len(values) + len(named):
            raise TypeError(f"{type(self).__qualname__}: the fields are {self.FIELDS}, given were {values} and {named}")
        self.__dict__.update({name: fields.get(name, getattr(type(self), name, None)) for name in self.FIELDS})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__qualname__} can't be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((self.code, *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def values(self) -> dict[str, object]:
        """Return the fields by name."""
        return dict(self.__dict__)

    def replace(self, **changed: object) -> Self:
        """Return a copy with other values in some fields."""
        return type(self)(**{**self.__dict__, **changed})

    def to_json(self) -> dict[str, object]:
        """Return the code, the severity and the fields, messages among them likewise."""
        plain = {name: _plain(value) for name, value in self.__dict__.items()}
        return {"code": self.code, "severity": self.severity.value, **plain}


class Note(Message, abstract=True):
    """Base class of what is worth knowing."""

    severity = Severity.NOTE


class Caution(Message, abstract=True):
    """Base class of what costs speed, memory, accuracy or certainty."""

    severity = Severity.WARNING


class Advice(Message, abstract=True):
    """Base class of what to do next."""

    severity = Severity.ADVICE


def from_json(document: Mapping[str, object]) -> Message:
    """Return the message that ``to_json`` made ``document`` of; its module must be imported.

    KeyError for a code that is not known. TypeError for other fields than the class has.
    """
    fields = {name: _restored(value) for name, value in document.items() if name not in ("code", "severity")}
    return _CLASSES[str(document["code"])](**fields)


def _plain(value: object) -> object:
    if isinstance(value, Message):
        return value.to_json()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str, dict)) else str(value)


def _restored(value: object) -> object:
    if isinstance(value, dict) and value.get("code") in _CLASSES:
        return from_json(value)
    return tuple(_restored(item) for item in value) if isinstance(value, list) else value


class MessageError(Exception):
    """An exception that carries a message. Its ``str`` is the message's code."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.code)
        self.message = message


class Printed(Message):
    """Text of another program or of the operating system, as it was printed."""

    code = "common.printed"
    template = "{detail}"

    detail: str


def message_of(error: Exception) -> Message:
    """Return the message that ``error`` carries. For any other exception, return its text, or its type's name."""
    return error.message if isinstance(error, MessageError) else Printed(str(error) or type(error).__name__)
