"""A folder for the time of a process, in the temporary folder; one that a killed process left is removed by the next.

A process has its folder locked as long as it lives: the number of a process would say nothing in a container, which may
have the temporary folder of others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def folder(name: str, inside: Path | None = None) -> Iterator[Path]:
    """A new folder that begins with ``name``, gone at the end; what earlier ones of this user's left here goes too.

    It is ``inside`` another than the temporary one.
    """
    prefix = f"{name}-{os.getuid()}-{platform.node()}-"  # other nodes may share the temporary folder
    for left in (inside or Path(tempfile.gettempdir())).glob(f"{prefix}*"):
        with contextlib.suppress(OSError), _locked(left):
            shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=inside) as made, contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # some network file systems lock no folder: nobody removes it then
            held.enter_context(_locked(Path(made)))
        yield Path(made)


def temporary() -> str:
    """Return the temporary folder."""
    return tempfile.gettempdir()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Raises OSError where it can't be locked, or is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
