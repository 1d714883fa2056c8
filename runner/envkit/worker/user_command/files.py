"""The files that a command line names: a change in one between two runs means that they did different work."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# Larger files are known by their size and time: to read them would push others out of the page cache.
READ_BYTES = 64 * 2**20


class Content(NamedTuple):
    """``digest`` is the SHA-256; ``stamp`` changes with each write, also of the same once more."""

    digest: str
    stamp: tuple[int, int]


def named(argv: Sequence[str], folder: Path) -> dict[str, Content]:
    """By name the files that ``argv`` names: ``train.py``, ``--config=x.yaml`` or ``-m package.train``."""
    names = []
    for earlier, word in zip(("", *argv), argv):
        if earlier == "-m":
            module = word.replace(".", "/")
            names += [f"{module}.py", f"{module}/__main__.py"]
        names += [word, word.partition("=")[2]]
    contents = {}
    for name in dict.fromkeys(names):
        content = _content(folder / name) if name else None
        if content is not None:
            contents[name] = content
    return contents


def unchanged(before: Mapping[str, Content], argv: Sequence[str], folder: Path) -> dict[str, str]:
    """SHA-256 by name of those that are as they were ``before``: what the command writes to is not its own part."""
    after = named(argv, folder)
    return {name: content.digest for name, content in before.items() if after.get(name) == content}


def _content(path: Path) -> Content | None:
    """None for what is no file that can be read."""
    try:
        if not path.is_file():
            return None
        about = path.stat()
        large = about.st_size > READ_BYTES
        content = f"{about.st_size} {about.st_mtime_ns}".encode() if large else path.read_bytes()
        return Content(hashlib.sha256(content).hexdigest(), (about.st_mtime_ns, about.st_ino))
    except (OSError, ValueError):  # no permission, or a word that can't be a file's name
        return None
