from __future__ import annotations

import errno
import fcntl
import os
import platform
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from envkit.common.machine_lock import machine_lock
from envkit.common.running_messages import Locked, LockUnopenable, NoLocks

from tests.refusals import refusal

LOCK = f"envkit-{platform.node()}.lock"
HOLD = "import envkit.common.machine_lock as m\nwith m.machine_lock(): print('held', flush=True); input()"


def hold():
    with machine_lock():
        pass


@pytest.fixture
def holder():
    """Another process that holds the machine."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_held_by_another_process_which_is_named(holder):
    assert refusal(hold) == Locked(str(holder.pid))


def test_free_again_when_the_holder_is_killed(holder):
    holder.kill()
    holder.wait()
    with machine_lock():
        pass


def test_free_again_after_use_and_after_an_error():
    with pytest.raises(RuntimeError), machine_lock():
        raise RuntimeError
    with machine_lock():
        assert refusal(hold) == Locked(str(os.getpid()))
    with machine_lock():
        pass


def test_other_users_can_use_the_same_lock():
    umask = os.umask(0o077)
    try:
        with machine_lock():
            path = Path(tempfile.gettempdir()) / LOCK
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
    finally:
        os.umask(umask)


def test_a_lock_that_cannot_be_opened():
    (Path(tempfile.gettempdir()) / LOCK).mkdir()
    assert refusal(hold) == LockUnopenable(str(Path(tempfile.gettempdir()) / LOCK), "Is a directory")


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("content")
    (Path(tempfile.gettempdir()) / LOCK).symlink_to(precious)
    assert isinstance(refusal(hold), LockUnopenable)
    assert precious.read_text() == "content"


def test_a_machine_of_another_name_that_shares_the_folder_is_another_one(holder, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "node2")
    with machine_lock():
        pass


def test_a_file_system_without_locks(monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert refusal(hold) == NoLocks(str(Path(tempfile.gettempdir()) / LOCK), "Function not implemented")
