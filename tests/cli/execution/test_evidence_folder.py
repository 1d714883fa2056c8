"""The folder in which the processes of a command leave their evidence."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys

import pytest
from envkit.cli.execution import on_machine
from envkit.cli.execution.on_machine import evidence_folder
from envkit.engines.base import PROJECT

from tests import second_user

# Leaves forged evidence in a folder whose name everybody can read on an engine's command line, and what makes a reader
# wait.
FORGE = """
def attempt(action):
    try:
        action()
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])

folder = Path(sys.argv[1])
attempt(lambda: (folder / "99999.json").write_text("{}"))
attempt(lambda: os.mkfifo(folder / "99998.json"))
attempt(lambda: os.listdir(folder))
"""


@second_user.needs_root
@pytest.mark.parametrize("shared", [True, False], ids=["with a container", "on this machine"])
def test_another_user_who_knows_its_name_leaves_nothing_there(shared_folder, shared):
    with evidence_folder(shared) as folder:
        assert second_user.said(FORGE, folder).split() == ["EACCES"] * 3
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("free", "in_memory"), [(2**20, True), (2**20 - 1, False)])
def test_shared_memory_that_a_training_has_filled_holds_no_evidence(monkeypatch, free, in_memory):
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(on_machine, "_free_bytes", lambda folder: free)
    with evidence_folder(shared=False) as folder:
        assert folder.is_relative_to(on_machine.MEMORY) is in_memory


def test_all_processes_in_a_container_can_write_there():
    """They may be other users outside; what is mounted is the folder itself, and not the closed one around it."""
    with evidence_folder(shared=True) as folder:
        assert folder.stat().st_mode & 0o777 == 0o777
        assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert not folder.parent.exists()


def test_what_a_killed_command_left_is_removed_by_the_next(shared_folder):
    killed = [sys.executable, "-m", "envkit", "exec", "baseline", "--", "sh", "-c", "kill -KILL $PPID"]
    assert subprocess.run(killed, cwd=PROJECT, check=False).returncode == -signal.SIGKILL
    (left,) = shared_folder.glob(f"envkit-exec-{os.getuid()}-{platform.node()}-*")
    with evidence_folder(shared=False) as folder:
        assert not left.exists()
        assert folder.parent == shared_folder
