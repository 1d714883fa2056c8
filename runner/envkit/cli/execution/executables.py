"""Find the file that a command's name stands for, as a shell would, or say why it can't be used."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

from envkit.messages import Message, MessageError

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # the exit statuses of POSIX shells (Shell Command Language, 2.8.2)


def load_messages() -> ModuleType:
    """Return the messages of this package, imported only if something is wrong: `envkit exec` is to start fast."""
    return importlib.import_module("envkit.cli.execution.messages")


class Unusable(MessageError):
    """Nothing can be started by a name. ``status`` is the exit status for that."""

    def __init__(self, message: Message, status: int) -> None:
        super().__init__(message)
        self.status = status


def find(command: str, search: str | None) -> str:
    """Return the executable file called ``command``, in the folders of ``search`` (a PATH) if it has no slash.

    Raise Unusable if it can't be executed.
    """
    if "/" in command:
        return _judged(command)
    closed: Unusable | None = None
    for folder in (os.defpath if search is None else search).split(os.pathsep):
        path = f"{folder or '.'}/{command}"
        if os.access(path, os.F_OK) and not Path(path).is_dir():
            try:
                return _judged(path)
            except Unusable as reason:
                closed = closed or reason
    if closed is not None:
        raise closed
    messages = load_messages()
    raise Unusable(messages.NoSuch(messages.COMMAND_ON_PATH, _unquoted(command)), NOT_FOUND)


def _unquoted(command: str) -> tuple[str, ...] | None:
    from envkit.bench.early_checks import unquoted  # which takes a while to import, and is seldom needed

    return unquoted(command)


def _judged(path: str) -> str:
    messages = load_messages()
    if not os.access(path, os.F_OK):
        raise Unusable(messages.NoSuch(messages.FILE, _unquoted(path)), NOT_FOUND)
    if Path(path).is_dir():
        raise Unusable(messages.IsAFolder(), NOT_EXECUTABLE)
    if not os.access(path, os.X_OK):
        raise Unusable(messages.NotExecutable(path), NOT_EXECUTABLE)
    return path
