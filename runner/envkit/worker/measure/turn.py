"""A worker that was started ahead of its turn: it imports what it needs, then waits until the runner says go.

The turn is a FIFO that the runner made. A worker has it open for reading while it waits, which takes no CPU time, and
the runner's first byte ends the wait.
"""

from __future__ import annotations

import contextlib
import os
import select

# A runner that was killed before it had the FIFO open gives no turns: nothing waits for longer than that.
PATIENCE_S = 600.0
# The exit status where there is no such FIFO (sysexits.h, EX_UNAVAILABLE): what a container sees of the machine's
# temporary folder may be another one.
NOT_THERE = 69


def wait(path: str) -> bool:
    """Wait for the turn at ``path``; False where it does not come: the runner has gone. Raises FileNotFoundError."""
    fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.closing(os.fdopen(fifo, "rb", buffering=0)) as file:
        waiting = select.poll()
        waiting.register(fifo, select.POLLIN)
        waiting.poll(PATIENCE_S * 1000)
        while (said := file.read(1)) is None:  # the runner has it open, and others train first
            waiting.poll(PATIENCE_S * 1000)
        return bool(said)
