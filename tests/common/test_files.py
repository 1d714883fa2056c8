"""Files from outside: what is read, what is refused, and that nothing waits."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.common import files
from envkit.common.file_messages import LargerThan, LinkOfOther, NotRegular
from envkit.common.messages import Unreadable
from envkit.messages import Printed

from tests.refusals import refusal

NOBODY = 65534
other_user = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    return tmp_path / "file"


def test_a_regular_file_is_read_up_to_its_limit(file):
    assert files.read(file) == files.read(file, most=7) == b"content"
    assert refusal(files.read, file, 6, error=files.Refused) == LargerThan(7, 6)


def test_what_grows_while_it_is_read_is_refused(monkeypatch, file):
    monkeypatch.setattr(os, "fstat", lambda descriptor: file.with_name("empty").stat())
    file.with_name("empty").touch()
    assert refusal(files.read, file, 6, error=files.Refused) == LargerThan(7, 6)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "a FIFO"),
        (lambda path: socket.socket(socket.AF_UNIX).bind(str(path)), "a socket"),
        (lambda path: path.symlink_to("/dev/zero"), "a device"),
        (lambda path: path.symlink_to("/dev/tty"), "a device"),
    ],
    ids=["FIFO", "socket", "zeros", "terminal"],
)
def test_what_is_no_regular_file_is_refused_at_once(monkeypatch, tmp_path, make, kind):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make(Path("file"))
    assert refusal(files.read, "file", error=files.Refused) == NotRegular(kind)
    assert refusal(files.content, "file") == Unreadable("file", NotRegular(kind))


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (lambda path: None, errno.ENOENT),
        (lambda path: path.mkdir(), errno.EISDIR),
        (lambda path: path.symlink_to("file"), errno.ELOOP),
        (lambda path: path.symlink_to("none"), errno.ENOENT),
    ],
    ids=["nothing", "folder", "circle", "dangling link"],
)
def test_other_errors_are_the_systems(tmp_path, make, number):
    make(tmp_path / "file")
    with pytest.raises(OSError, match=r"\[Errno") as caught:
        files.read(tmp_path / "file")
    assert (caught.value.errno, files.reason(caught.value)) == (number, Printed(os.strerror(number)))


def test_the_users_own_links_are_followed(tmp_path, file):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "results").symlink_to("scratch")
    (tmp_path / "scratch/first").symlink_to("../file")
    (tmp_path / "second").symlink_to(tmp_path / "results/first")
    assert files.read(tmp_path / "second") == b"content"


@other_user
@pytest.mark.parametrize("owner", [0, 1234], ids=["root's", "the user's"])
def test_a_link_of_another_user_is_refused(tmp_path, file, owner):
    """It would have this user read, and quote, what its maker may not."""
    os.chown(file, owner, owner)
    (tmp_path / "link").symlink_to("file")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    (tmp_path / "own").symlink_to("link")
    for name in ("link", "own"):
        assert refusal(files.read, tmp_path / name, error=files.Refused) == LinkOfOther(NOBODY, owner)


@other_user
def test_what_others_share_is_read(tmp_path, file):
    """Their files, folders that are their links, and their links to files of their own."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/file").write_bytes(b"theirs")
    (tmp_path / "theirs/link").symlink_to("file")
    (tmp_path / "latest").symlink_to("theirs")
    for path in (tmp_path / "theirs", tmp_path / "theirs/file", tmp_path / "theirs/link", tmp_path / "latest"):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for name in ("theirs/file", "theirs/link", "latest/file", "latest/link"):
        assert files.read(tmp_path / name) == b"theirs"


@other_user
@pytest.mark.parametrize(("of_link", "of_file"), [(NOBODY, 0), (0, 0), (0, NOBODY), (NOBODY, NOBODY), (1234, 1234)])
def test_another_user_follows_links_of_their_own_of_root_and_of_the_files_owner(tmp_path, file, of_link, of_file):
    """As user nobody reads them, for real."""
    (tmp_path / "link").symlink_to("file")
    os.chown(file, of_file, of_file)
    os.chown(tmp_path / "link", of_link, of_link, follow_symlinks=False)
    tmp_path.chmod(0o755)  # and no folder above it, which only a full name would lead through
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    code = f"import sys; sys.path[:0] = {sys.path!r}; from envkit.common import files; print(files.read(sys.argv[1]))"
    process = subprocess.run(
        [*as_nobody, sys.executable, "-c", code, "link"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.stdout == "b'content'\n", process.stderr


def test_a_file_is_only_opened_when_it_is_known_to_be_one(monkeypatch, tmp_path):
    """To open a device can have an effect, such as to rewind a tape."""
    os.mkfifo(tmp_path / "fifo")
    opened, real = [], os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *more: opened.append(flags) or real(path, flags, *more))
    with pytest.raises(OSError, match="not-regular"):
        files.read(tmp_path / "fifo")
    assert opened
    assert all(flags & os.O_PATH for flags in opened)


def test_whole_lines(tmp_path):
    for content, size in ((b"", 0), (b"a", 0), (b"a\nb", 2), (b"a\n" + b"b" * 9000, 2), (b"a\nb\n", 4)):
        (tmp_path / "file").write_bytes(content)
        with (tmp_path / "file").open("rb") as file:
            assert files.whole_lines(file.fileno()) == size


def test_no_file_is_left_open(tmp_path, file):
    os.mkfifo(tmp_path / "fifo")
    before = [*Path("/proc/self/fd").iterdir()]
    for name in ("fifo", "none", "."):
        assert isinstance(refusal(files.content, tmp_path / name), Unreadable)
    assert isinstance(refusal(files.content, file, 1), Unreadable)
    assert files.content(file) == b"content"
    assert len([*Path("/proc/self/fd").iterdir()]) == len(before)
