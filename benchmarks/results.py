"""What a benchmark has measured so far: a file of JSON lines that an interrupted benchmark goes on with."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envkit.engines.base import PROJECT

from benchmarks.errors import ScriptError

FOLDER = PROJECT / "results" / "benchmarks"
Line = dict[str, Any]


def complete_lines(path: Path) -> list[bytes]:
    """Return the lines of a file, none if it does not exist. A kill may have left half a line, which is no part."""
    content = path.read_bytes() if path.exists() else b""
    return content.rpartition(b"\n")[0].splitlines()


def append_line(path: Path, document: Mapping[str, object]) -> None:
    """Write one more line of JSON. Half a line that a kill left is removed; complete ones are never touched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        if (complete := content.rfind(b"\n") + 1) < len(content):
            file.truncate(complete)
        file.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")


class Results:
    """The lines of ``path``: first the settings, which must stay the same, then what was measured under them."""

    def __init__(self, path: Path, settings: Line) -> None:
        self.path = path
        self.lines: list[Line] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read(settings)
        if not self.lines:
            path.write_text("")
            self.append("settings", **settings)

    def _read(self, settings: Line) -> None:
        content = self.path.read_bytes()
        complete_lines = content.rpartition(b"\n")[0]  # a kill may have left half a line
        try:
            self.lines = [json.loads(line) for line in complete_lines.splitlines()]
            before = {key: self.lines[0][key] for key in settings} if self.lines else {}
        except (ValueError, KeyError, TypeError):
            raise ScriptError(f"{self.path}: is not what this benchmark writes; give another file") from None
        now = json.loads(json.dumps(settings))
        for key, value in before.items():
            if value != now[key]:
                raise ScriptError(
                    f"{self.path}: was measured with {_difference(key, value, now[key])}; "
                    "move the file away, or give another with --results"
                )
        if self.lines and not content.endswith(b"\n"):
            self.path.write_bytes(complete_lines + b"\n")

    def append(self, kind: str, **fields: Any) -> None:
        """Write one line, with the time (seconds since 1970)."""
        line = {"kind": kind, "time": round(time.time(), 1), **fields}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)

    def of(self, kind: str, **fields: Any) -> list[Line]:
        """The lines of one kind that have these values."""
        return [
            line
            for line in self.lines
            if line["kind"] == kind and all(line[name] == value for name, value in fields.items())
        ]


def _difference(key: str, before: Any, now: Any) -> str:
    """In words; of what has names, only those that differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        return f"other {key}: {', '.join(names)}"
    return f"{key} {before}, and now it is {now}"
