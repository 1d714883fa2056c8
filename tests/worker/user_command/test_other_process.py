"""What is seen of a process from outside."""

from __future__ import annotations

import mmap
import os

import pytest

from runner.checks.effect import check
from runner.profiles.environment import Environment
from runner.worker.user_command import other_process


def test_a_mapped_file_may_have_any_bytes_in_its_name(tmp_path):
    path = tmp_path / os.fsdecode(b"lib\xff.so")
    path.write_bytes(b"x")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        assert other_process.look(os.getpid(), None).keys() == {
            "sensitive", "preloaded", "allocator",
        }  # fmt: skip
    assert other_process.seen({"LD_PRELOAD": str(path)}, {os.path.realpath(path)})["preloaded"] == {str(path): "mapped"}


@pytest.mark.parametrize(
    ("preload", "files", "allocator"),
    [
        ("", {"/lib/libc.so.6", "/usr/bin/python3"}, "glibc"),
        ("/opt/libjemalloc.so.2", {"/lib/libc.so.6", "/opt/libjemalloc.so.2"}, "jemalloc"),
        ("/opt/libiomp5.so:/opt/libmimalloc.so.2", {"/lib/libc.so.6", "/opt/libmimalloc.so.2"}, "mimalloc"),
        ("/opt/libjemalloc.so.2", {"/lib/libc.so.6"}, "glibc"),  # the loader did not find it
        ("", {"/lib/libc.so.6", "/opt/libtcmalloc_minimal.so.4"}, "tcmalloc"),  # linked with it
        ("", {"/usr/bin/static"}, None),
    ],
)
def test_the_allocator_of_another_process(preload, files, allocator):
    assert other_process.allocator({"LD_PRELOAD": preload}, files) == allocator


def test_an_allocator_that_was_seen_from_outside_is_in_effect_and_its_settings_are_not_verified():
    expect = {"malloc.allocator": "jemalloc", "malloc.settings.thp": "always", "memory.huge_pages": "most"}
    environment = Environment("mine", "A test", {}, {}, (), expect, "same")
    evidence = {"variables": {}, "malloc": {"allocator": "jemalloc"}, "not_observed": "from outside"}
    found = check(environment, evidence, {})
    assert [(one.key, one.holds, one.verified) for one in found] == [
        ("malloc.allocator", True, True), ("malloc.settings.thp", True, False), ("memory.huge_pages", True, False),
    ]  # fmt: skip
    other = check(environment, {**evidence, "malloc": {"allocator": "glibc"}}, {})
    assert not other[0].holds
