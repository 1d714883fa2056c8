"""A worker's wait for its turn."""

from __future__ import annotations

import os

import pytest
from envkit.worker.measure import turn


@pytest.fixture
def pipes():
    """Both pipes of a worker: the descriptors (turn, the runner's end of it, the runner's end of stdout, stdout)."""
    return *os.pipe(), *os.pipe()


@pytest.mark.parametrize(("said", "has_it"), [(turn.GO, True), (b"", False), (b"x", False)])
def test_the_runner_says_go_or_is_gone(pipes, said, has_it):
    its_turn, door, printed, document = pipes
    os.write(door, said)
    os.close(door)
    assert turn.wait(its_turn, document) is has_it
    assert turn.after_ready(os.read(printed, 99)) == b""


def test_a_runner_that_was_killed_before_the_worker_was_ready(pipes):
    its_turn, door, printed, document = pipes
    os.close(door)
    os.close(printed)
    assert turn.wait(its_turn, document) is False


@pytest.mark.parametrize(
    ("printed", "after"),
    [
        (b"", None),
        (b"envkit-", None),
        (b"a banner\n", None),
        (turn.READY, b""),
        (b"a banner\nenvkit-ready\n{}\n", b"{}\n"),
    ],
)
def test_what_a_worker_prints_after_it_was_ready(printed, after):
    assert turn.after_ready(printed) == after
