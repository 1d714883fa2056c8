"""What is shown while a run measures."""

from __future__ import annotations

import pytest
from envkit.bench.messages import InterimSpeedup
from envkit.common import progress
from envkit.common.messages import Clauses
from envkit.common.progress import Progress

STANDING = Clauses((InterimSpeedup("mine", 1.5, 1.4, 1.6),))


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test lets pass."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_without_a_terminal_a_line_comes_every_30_seconds(clock, capsys):
    shown = Progress(100.0, quiet=False)
    for block in range(1, 8):
        clock[0] += 12.0
        shown.block(f"block {block} of 7", STANDING if block > 5 else None, 100.0 - clock[0])
    assert capsys.readouterr().err.splitlines() == [
        "block 3 of 7; about 1:04 left", "block 6 of 7: mine 1.50x (interim 1.40 to 1.60); about 0:28 left",
    ]  # fmt: skip


def test_samples_count_as_lines_too(clock, capsys):
    shown = Progress(100.0, quiet=False)
    for _ in range(3):
        clock[0] += 20.0
        shown.finish("block 1", "mine", 0.5, "run")
    assert capsys.readouterr().err == "block 1, mine: 500.00 ms per run\n"


def test_nothing_is_shown_if_it_is_to_be_quiet(clock, capsys):
    shown = Progress(100.0, quiet=True)
    clock[0] = 100.0
    shown.block("block 1", STANDING, 0.0)
    shown.say("hello")
    assert capsys.readouterr().err == ""
