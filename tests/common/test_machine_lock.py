from __future__ import annotations

import errno
import fcntl
import os
import platform
import pwd
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from envkit.common import machine_lock as machine_lock_module
from envkit.common.machine_lock import machine_lock
from envkit.common.running_messages import NO_LOCK, Locked, NoLocks, UnusableLock
from envkit.rendering import text

from tests import second_user
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
    assert refusal(hold) == UnusableLock(str(Path(tempfile.gettempdir()) / LOCK), "Is a directory")


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("content")
    (Path(tempfile.gettempdir()) / LOCK).symlink_to(precious)
    assert isinstance(refusal(hold), UnusableLock)
    assert precious.read_text() == "content"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))])
def test_what_is_no_file_in_the_place_of_the_lock_holds_nobody_up(make):
    path = Path(tempfile.gettempdir()) / LOCK
    try:
        make(path)
    except PermissionError:
        pytest.skip("only root can make a device")
    assert refusal(hold) == UnusableLock(str(path), NO_LOCK)


# Makes the lock first, and holds it for ever.
SQUAT = """
descriptor = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o666)
os.fchmod(descriptor, 0o666)
os.write(descriptor, b"\\x1b[2J4242")
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@second_user.needs_root
def test_another_user_who_holds_the_machine_for_ever_is_named(shared_folder):
    """By the kernel's list: anybody can write another number into the file, or escape codes."""
    with second_user.beside(SQUAT, shared_folder / LOCK) as other:
        found = refusal(hold)
    user = pwd.getpwuid(second_user.USER).pw_name
    assert found == Locked(str(other.pid), user)
    assert text(found) == (
        f"another measurement of user {user} runs on this machine (process {other.pid}); "
        f"wait for it, or it spoils both; if that process of {user} measures nothing, set TMPDIR to another folder"
    )


def test_what_somebody_wrote_into_the_lock_is_not_shown(holder, monkeypatch):
    monkeypatch.setattr(machine_lock_module, "_holder", lambda lock: None)  # as where /proc is another PID namespace's
    assert refusal(hold) == Locked(str(holder.pid))
    (Path(tempfile.gettempdir()) / LOCK).write_text("\x1b[2Jnonsense")
    assert refusal(hold) == Locked(None)


def test_a_machine_of_another_name_that_shares_the_folder_is_another_one(holder, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "node2")
    with machine_lock():
        pass


def test_a_file_system_without_locks(monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert refusal(hold) == NoLocks(str(Path(tempfile.gettempdir()) / LOCK), "Function not implemented")
