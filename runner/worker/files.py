"""The files that a command line names: a change in one between two runs means that they did different work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

# Larger files are known by their size and time: to read them would push others out of the page cache.
READ_BYTES = 64 * 2**20


def named(argv: Sequence[str], folder: Path) -> dict[str, str]:
    """SHA-256 by name of the files that ``argv`` names: ``train.py``, ``--config=x.yaml`` or ``-m package.train``."""
    names = []
    for earlier, word in zip(("", *argv), argv, strict=False):
        if earlier == "-m":
            module = word.replace(".", "/")
            names += [f"{module}.py", f"{module}/__main__.py"]
        names += [word, word.partition("=")[2]]
    found = {}
    for name in dict.fromkeys(names):
        digest = _digest(folder / name) if name else None
        if digest is not None:
            found[name] = digest
    return found


def unchanged(before: Mapping[str, str], argv: Sequence[str], folder: Path) -> dict[str, str]:
    """Those whose content is what it was ``before``: a file that the command writes to is not what it is made of."""
    after = named(argv, folder)
    return {name: digest for name, digest in before.items() if after.get(name) == digest}


def _digest(path: Path) -> str | None:
    """None for what is no file that can be read."""
    try:
        if not path.is_file():
            return None
        about = path.stat()
        if about.st_size > READ_BYTES:
            return hashlib.sha256(f"{about.st_size} {about.st_mtime_ns}".encode()).hexdigest()
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):  # no permission, or a word that can't be a file's name
        return None
