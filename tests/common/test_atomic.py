"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import resource
import stat

from envkit.common import atomic
from envkit.common.messages import Unwritable

from tests.refusals import refusal


def test_a_new_file_is_one_that_the_user_would_make(tmp_path):
    atomic.write(tmp_path / "new", b"content")
    (tmp_path / "by-hand").write_bytes(b"")
    assert (tmp_path / "new").read_bytes() == b"content"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "by-hand").stat().st_mode
    assert len(list(tmp_path.iterdir())) == 2


def test_an_old_file_is_replaced_and_keeps_its_permissions(tmp_path):
    file = tmp_path / "old"
    file.write_bytes(b"a much longer content")
    file.chmod(0o640)
    atomic.write(file, b"new")
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"new", 0o640)


def test_who_reads_the_old_file_reads_on(tmp_path):
    file = tmp_path / "old"
    file.write_bytes(b"old content")
    with file.open("rb") as reading:
        atomic.write(file, b"new")
        assert reading.read() == b"old content"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    atomic.write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        atomic.write(pipe, b"content")
        assert os.read(reading, 100) == b"content"
    finally:
        os.close(reading)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, os.strerror(28))

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    refused = refusal(atomic.write, tmp_path / "file", b"new")
    assert refused == Unwritable(str(tmp_path / "file"), "No space left on device", "file")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"old")]


def test_a_folder_that_is_not_there(tmp_path):
    place = tmp_path / "none/file"
    assert refusal(atomic.write, place, b"x") == Unwritable(str(place), "No such file or directory")


def test_what_there_is_no_room_for_leaves_the_old_file(tmp_path):
    file = tmp_path / "old"
    file.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        assert refusal(atomic.write, file, b"x" * 100) == Unwritable(str(file), "File too large", "old")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"old", [file])
