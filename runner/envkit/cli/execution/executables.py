"""Find the file that a command's name stands for, as a shell would, and say why there is none."""

from __future__ import annotations

import os
from pathlib import Path

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # the exit statuses of POSIX shells (Shell Command Language, 2.8.2)


class Unusable(Exception):
    """Nothing can be started by this name: why not, and the exit status for that."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


def find(command: str, search: str | None) -> str:
    """The executable file called ``command``, in the folders of ``search`` (a PATH) if it has no slash.

    Raises Unusable.
    """
    if "/" in command:
        return _judged(command)
    closed = None
    for folder in (os.defpath if search is None else search).split(os.pathsep):
        path = f"{folder or '.'}/{command}"
        if os.access(path, os.F_OK) and not Path(path).is_dir():
            try:
                return _judged(path)
            except Unusable as reason:
                closed = closed or reason
    raise closed or Unusable("no such command on the PATH", NOT_FOUND)


def _judged(path: str) -> str:
    if not os.access(path, os.F_OK):
        raise Unusable("no such file", NOT_FOUND)
    if Path(path).is_dir():
        raise Unusable("is a folder", NOT_EXECUTABLE)
    if not os.access(path, os.X_OK):
        raise Unusable(f"not executable; fix that with: chmod +x {path}", NOT_EXECUTABLE)
    return path
