"""Catch what libraries print: in this process, where it goes past Python's own streams, and in another one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

from envkit.worker.evidence.symbols import process

# A Python that starts, and does nothing.
NOTHING = (sys.executable, "-S", "-c", "")


def printed(descriptor: int, call: Callable[[], object]) -> str:
    """Return what ``call`` makes libraries print to the file descriptor (1 for stdout, 2 for stderr)."""
    flush = process().fflush
    with tempfile.TemporaryFile() as caught:
        flush(None)
        saved = os.dup(descriptor)
        os.dup2(caught.fileno(), descriptor)
        try:
            call()
        finally:
            flush(None)
            os.dup2(saved, descriptor)
            os.close(saved)
        caught.seek(0)
        return caught.read().decode(errors="replace")


def run_child(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Return what a command prints that has these ``variables``.

    They are never those of ``os.environ``, which the program may have changed: see ``initial_environment``.
    """
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=20, check=False)
