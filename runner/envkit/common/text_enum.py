"""An Enum whose members are texts."""

from __future__ import annotations

from enum import Enum


class TextEnum(str, Enum):
    """A set of texts. A member compares, prints and dumps as its text, like one of StrEnum, which Python 3.10 lacks."""

    def __str__(self) -> str:
        """Its text, where Enum has the member's name. Format strings ask for this too, on every version of Python."""
        return str.__str__(self)
