"""A worker's wait for its turn."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from envkit.worker.measure import turn


@pytest.fixture
def fifo(tmp_path):
    os.mkfifo(tmp_path / "turn")
    return str(tmp_path / "turn")


def runner(fifo, said, after_s=0.0):
    """Open the turn as the runner does, once somebody waits there, say something, and close it."""
    with Path(fifo).open("wb", buffering=0) as door:
        time.sleep(after_s)
        door.write(said)


@pytest.mark.parametrize(("said", "has_it"), [(b"1", True), (b"", False)])
def test_the_runner_says_go_or_is_gone(fifo, said, has_it):
    other = threading.Thread(target=runner, args=(fifo, said))
    other.start()
    try:
        assert turn.wait(fifo) is has_it
    finally:
        other.join()


def test_nobody_waits_for_ever(fifo, monkeypatch):
    monkeypatch.setattr(turn, "PATIENCE_S", 0.05)
    assert turn.wait(fifo) is False


def test_it_waits_for_as_long_as_the_runner_is_there(fifo, monkeypatch):
    monkeypatch.setattr(turn, "PATIENCE_S", 0.05)
    other = threading.Thread(target=runner, args=(fifo, b"1", 0.3))
    other.start()
    # The other has it open from here on. What it says is kept as long as this is open: the wait may begin later.
    door = os.open(fifo, os.O_RDONLY)
    try:
        assert turn.wait(fifo) is True
    finally:
        other.join()
        os.close(door)
