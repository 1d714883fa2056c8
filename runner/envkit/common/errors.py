"""How the command line ends: exit statuses, and the one error that means the user's input must change."""

from __future__ import annotations

from collections.abc import Mapping

from envkit.messages import Message, MessageError

MEASURED = 0
FAILED = 1  # a worker failed, a profile was not in effect, a target not reached; or a command found what it looks for
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


# What comes of a document from outside whose values are not those that the kit writes.
MISFITS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, StopIteration, RecursionError)


class InputError(MessageError):
    """Bad input. The message is one line: which file and key, what is wrong, and how to fix it.

    ``document`` is what --json prints beside the error, if something was found before it.
    """

    def __init__(self, message: Message, document: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.document = document


class InterruptedWith(KeyboardInterrupt):
    """An interrupt (Ctrl-C) after something was found; ``document`` is as in ``InputError``."""

    def __init__(self, document: Mapping[str, object]) -> None:
        super().__init__()
        self.document = document
