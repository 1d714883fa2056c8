"""What is seen of a process from outside."""

from __future__ import annotations

import mmap
import os

from runner.worker.user_command import other_process


def test_a_mapped_file_may_have_any_bytes_in_its_name(tmp_path):
    path = tmp_path / os.fsdecode(b"lib\xff.so")
    path.write_bytes(b"x")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert other_process.look(os.getpid(), None).keys() == {"sensitive", "preloaded"}
    assert other_process.seen({"LD_PRELOAD": str(path)}, {os.path.realpath(path)})["preloaded"] == {str(path): "mapped"}
