"""Records on disk, of which pages and Markdown are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.record import Event
from envkit.report import pictures

from tests import records
from tests.records import conclude


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[list[Event]], tuple[Path, list[Event], Result]]:
    """Write the record of these events, begun by a command; returns its folder, what it says, and the summary."""
    started = {"command": ["/somewhere/__main__.py", "bench", "mine", "--budget", "60s"], "kit_version": "0.1.0"}

    def write(events: list[Event]) -> tuple[Path, list[Event], Result]:
        folder = records.write(tmp_path / "run", [{**events[0], **started}, *events[1:]])
        read = record.read(folder)
        return folder, read, conclude(read)

    return write


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages name their pictures, without what is in them, which takes a second to draw."""
    monkeypatch.setattr(pictures, "svg", lambda picture, *_: f'<svg role="img"><text>{picture.name}</text></svg>')
