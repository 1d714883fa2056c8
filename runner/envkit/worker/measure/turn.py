"""A worker that was started ahead of its turn: it imports what it needs, then waits until the runner says go.

The two speak through the worker's own stdin and stdout, which every engine passes on. These have no name that another
user could open, and no folder must be mounted for them. The worker prints a line when it is ready, and then waits for
one byte. It reads the end of the pipe instead if the runner was killed.
"""

from __future__ import annotations

import os

# What the worker prints when it is ready, as a line of its own before its document.
READY = b"envkit-ready\n"
# What the runner answers, which alone counts as the turn.
GO = b"1"


def own_stdin() -> int:
    """Keep stdin for the turn alone, and return its file descriptor. Whatever else reads stdin finds it empty."""
    turn = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return turn


def wait(turn: int, document: int) -> bool:
    """Say at ``document`` that this worker is ready, and wait at ``turn``. Return False if the runner has gone."""
    try:
        os.write(document, READY)
        return os.read(turn, len(GO)) == GO
    except BrokenPipeError:
        return False
    finally:
        os.close(turn)


def after_ready(printed: bytes) -> bytes | None:
    """Return what a worker printed after it was ready; None if it is not ready yet."""
    _, ready, after = printed.partition(READY)
    return after if ready else None
