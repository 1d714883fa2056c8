"""The error of these scripts."""

from __future__ import annotations

from envkit.common.errors import InputError
from envkit.messages import Printed


class ScriptError(InputError):
    """Bad input of a script, or a command of its own that failed. ``detail`` is one line for the terminal."""

    def __init__(self, detail: str) -> None:
        super().__init__(Printed(detail))
        self.detail = detail

    def __str__(self) -> str:
        return self.detail
