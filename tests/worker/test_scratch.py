"""A folder for the time of a process, and what killed ones have left."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from envkit.engines.base import PROJECT
from envkit.worker import scratch

OTHER = """
import sys
from envkit.worker import scratch
with scratch.folder("envkit-test") as made:
    (made / "log").write_text("x")
    print(made, flush=True)
    sys.stdin.read()
"""


def other():
    """Another process with such a folder, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER], cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    return process, Path(process.stdout.readline().strip())


def test_it_is_gone_at_the_end():
    with scratch.folder("envkit-test") as made:
        assert made.parent == Path(tempfile.gettempdir())
        (made / "log").write_text("x")
    assert not made.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_has_is_not():
    living, its = other()
    killed, left = other()
    try:
        killed.kill()
        killed.communicate()
        assert (its.is_dir(), left.is_dir()) == (True, True)
        with scratch.folder("envkit-test"):
            assert ((its / "log").exists(), left.exists()) == (True, False)
        assert its.is_dir()
    finally:
        living.communicate("")
    assert not its.exists()


def test_folders_of_other_nodes_and_users_stay():
    others = [f"envkit-test-{os.getuid()}-{platform.node()}x-1", f"envkit-test-{os.getuid() + 1}-{platform.node()}-1"]
    for name in others:
        Path(tempfile.gettempdir(), name).mkdir()
    with scratch.folder("envkit-test"):
        pass
    assert all(Path(tempfile.gettempdir(), name).is_dir() for name in others)
