"""How the command line ends: exit statuses, and the errors that end a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envkit.messages import Message, MessageError

MEASURED = 0
FAILED = 1  # a worker failed, a profile was not in effect, a target not reached; or a command found what it looks for
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class CommandError(MessageError):
    """What ends a command. ``document`` is what its --json prints beside the error, if there is something to print."""

    status = FAILED

    def __init__(self, message: Message | str, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.document = document or {}


class Failure(CommandError):
    """The command failed, although its input is good. The message is one line: what failed, and what to do."""


class InputError(CommandError):
    """Bad input. The message is one line: which file and key, what is wrong, and how to fix it."""

    status = BAD_INPUT
