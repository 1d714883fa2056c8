"""Refuse a YAML text that would take too long, or too much memory, before anything is built of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from envkit.common.errors import InputError
from envkit.common.messages import InFile, RecursiveAnchor, TooDeep, TooManyValues

# The largest files of the kit have 18 kB, 1,400 values and 7 levels.
LARGEST = 128 * 1024  # bytes of a file, and characters of its values with what aliases stand for
MOST_VALUES = 5_000
DEEPEST = 8


@dataclass
class _Size:
    """Count a value with all that is in it."""

    values: int = 1
    characters: int = 0
    levels: int = 0  # below it

    def add(self, inner: _Size) -> None:
        self.values += inner.values
        self.characters += inner.characters
        self.levels = max(self.levels, inner.levels + 1)


def require(path: Path, text: str) -> None:
    """Raises InputError for a text of too many values or levels, and YAMLError for one that is not valid.

    libyaml, where PyYAML has it, takes an eighth of the time. If it calls a file invalid, PyYAML itself reads the file
    again.
    """
    try:
        _require(path, yaml.parse(text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader))
    except yaml.YAMLError:
        _require(path, yaml.parse(text, Loader=yaml.SafeLoader))


def _require(path: Path, events: Iterable[yaml.Event]) -> None:
    total = _Size(values=0)
    inside: list[tuple[str | None, _Size]] = []  # the anchors and sizes, as yet, of what is being read
    anchored: dict[str, _Size] = {}
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            _end(*inside.pop(), inside, anchored)
            continue
        if not isinstance(event, yaml.NodeEvent):  # of a document, or of the stream
            continue
        line = event.start_mark.line + 1 if event.start_mark else 1
        size = _Size(characters=len(event.value)) if isinstance(event, yaml.ScalarEvent) else _Size()
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in (anchor for anchor, _ in inside):
                raise InputError(InFile(str(path), line, RecursiveAnchor(event.anchor or "")))
            size = anchored.get(event.anchor or "", size)  # whoever builds it says that there is no such anchor
        total.values += size.values
        total.characters += size.characters
        if total.values > MOST_VALUES or total.characters > LARGEST:
            raise InputError(InFile(str(path), line, TooManyValues(MOST_VALUES, LARGEST)))
        if len(inside) + size.levels > DEEPEST:
            raise InputError(InFile(str(path), line, TooDeep(DEEPEST)))
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, size))
        else:
            _end(None if isinstance(event, yaml.AliasEvent) else event.anchor, size, inside, anchored)


def _end(anchor: str | None, size: _Size, inside: list[tuple[str | None, _Size]], anchored: dict[str, _Size]) -> None:
    """Take a value that is read to its end into account, where it stands and under its anchor."""
    if inside:
        inside[-1][1].add(size)
    if anchor is not None:
        anchored[anchor] = size
