"""Catch what a C library prints, which goes past Python's own streams."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable

from runner.worker.evidence.symbols import process


def printed(descriptor: int, call: Callable[[], object]) -> str:
    """What ``call`` makes libraries print to the file descriptor (1 for stdout, 2 for stderr)."""
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
