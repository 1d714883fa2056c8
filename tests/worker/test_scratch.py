"""A folder for the time of a process, and what killed ones have left."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from envkit.engines.base import PROJECT
from envkit.worker import scratch

from tests import second_user

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


def test_what_a_process_left_that_did_something_else_is_removed_too():
    left = Path(tempfile.gettempdir(), f"envkit-other-{os.getuid()}-{platform.node()}-0a1b")
    (left / "closed").mkdir(parents=True)
    (left / "closed").chmod(0)
    with scratch.folder("envkit-test"):
        assert not left.exists()


def test_one_that_is_removed_before_it_is_locked_is_made_again(monkeypatch):
    """Another process of the user's may look for what killed ones have left at that very moment."""
    make, made = tempfile.mkdtemp, []

    def make_and_lose(**options):
        made.append(make(**options))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose)
    with scratch.folder("envkit-test") as folder:
        assert folder.is_dir()


MANY = """
import sys
from envkit.worker import scratch
for _ in range(60):
    with scratch.folder("envkit-test") as made:
        (made / "log").write_text("x")
"""


def test_processes_that_make_some_at_once_keep_their_own():
    processes = [subprocess.Popen([sys.executable, "-c", MANY], cwd=PROJECT) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert [*Path(tempfile.gettempdir()).glob("envkit-test-*")] == []


# Gives what is no folder of the first user's the names of folders that a killed process of theirs would have left.
PLANT = """
place, prefix, precious = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
(place / f"{prefix}-a0").symlink_to(precious)
os.mkfifo(place / f"{prefix}-a1")
(place / f"{prefix}-a2").mkdir()
(place / f"{prefix}-a2/own").write_text("the other user's")
(place / f"{prefix}-a2/link").symlink_to(precious)
(place / f"{prefix}-a2").chmod(0o777)
"""


@second_user.needs_root
def test_another_user_can_not_have_anything_removed(shared_folder, tmp_path):
    precious = tmp_path / "precious"
    (precious / "inner").mkdir(parents=True)
    (precious / "inner/file").write_text("x")
    (precious / "inner").chmod(0o500)
    prefix = f"envkit-test-{os.getuid()}-{platform.node()}"
    second_user.said(PLANT, shared_folder, prefix, precious)
    with scratch.folder("envkit-test"):
        pass
    assert (precious / "inner/file").read_text() == "x"
    assert (precious / "inner").stat().st_mode & 0o777 == 0o500
    assert sorted(path.name for path in shared_folder.iterdir()) == [f"{prefix}-a{number}" for number in range(3)]
    assert (shared_folder / f"{prefix}-a2/own").read_text() == "the other user's"


ENTER = """
print(os.stat(sys.argv[1]).st_uid)
try:
    os.listdir(sys.argv[1])
except OSError as error:
    print(error.errno)
"""


@second_user.needs_root
def test_another_user_can_not_enter(shared_folder):
    with scratch.folder("envkit-test") as made:
        assert second_user.said(ENTER, made) == f"{os.getuid()}\n{errno.EACCES}\n"


def test_a_link_that_takes_the_place_of_a_folder_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    (precious / "inner").mkdir(parents=True)
    (precious / "inner").chmod(0o500)
    with scratch.folder("envkit-test") as made:
        made.rename(tmp_path / "moved")
        made.symlink_to(precious)
    assert (precious / "inner").stat().st_mode & 0o777 == 0o500
    made.unlink()


def test_folders_of_other_nodes_and_users_stay():
    others = [f"envkit-test-{os.getuid()}-{platform.node()}x-1", f"envkit-test-{os.getuid() + 1}-{platform.node()}-1"]
    for name in others:
        Path(tempfile.gettempdir(), name).mkdir()
    with scratch.folder("envkit-test"):
        pass
    assert all(Path(tempfile.gettempdir(), name).is_dir() for name in others)
