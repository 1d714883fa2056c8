"""What is seen of a process from outside."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

import pytest
from envkit.checks import process_scan
from envkit.checks.effect import check
from envkit.checks.process_messages import OtherValue
from envkit.profiles.environment import Environment
from envkit.worker.messages.evidence import LeavesNoEvidence, SeenFromOutside
from envkit.worker.user_command import other_process

from tests.processes import until


def test_a_mapped_file_may_have_any_bytes_in_its_name(tmp_path):
    path = tmp_path / os.fsdecode(b"lib\xff.so")
    path.write_bytes(b"x")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        found = other_process.look(os.getpid(), None).variables
        assert found.keys() == {"sensitive", "preloaded", "allocator"}
    assert other_process.seen({"LD_PRELOAD": str(path)}, {os.path.realpath(path)})["preloaded"] == {str(path): "mapped"}


# Writes over the variables that it was started with, as one does that gives itself a title; then, another program.
TITLED = """
import ctypes, os, sys
sys.stdin.readline()
given = dict(os.environ)
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
ctypes.memset(int(fields[47]), ord("x"), int(fields[48]) - int(fields[47]))
print("titled", flush=True)
sys.stdin.readline()
os.execve(sys.executable, [sys.executable, "-c", "print('next', flush=True); input()"], {**given, "OMP_A": "2"})
"""


def test_a_program_that_gives_itself_a_title_while_it_is_watched(tmp_path):
    """The first look counts, until the process runs another program. The same for all looks from outside."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", TITLED],
        env={"OMP_A": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    environment = Environment("mine", "A test", {"OMP_A": "1"}, {}, (), {}, "same")
    inside = seen = None
    with process:
        until(lambda: process.pid in dict(process_scan.look(process.pid, [], tmp_path, {})))
        for expected, wrong in (("1", []), ("1", []), ("2", [OtherValue("OMP_A", "2", "1")])):
            inside = other_process.look(process.pid, inside)
            assert inside.variables["sensitive"] == {"OMP_A": expected}
            seen = dict(process_scan.look(process.pid, [], tmp_path, seen or {}))
            assert seen[process.pid].wrong(environment) == wrong
            print(file=process.stdin, flush=True)
            process.stdout.readline()
    assert other_process.look(process.pid, inside) is inside


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
    evidence = {
        "variables": {},
        "malloc": {"allocator": "jemalloc"},
        "not_observed": SeenFromOutside(LeavesNoEvidence()).to_json(),
    }
    found = check(environment, evidence, {})
    assert [(one.key, one.holds, one.verified) for one in found] == [
        ("malloc.allocator", True, True), ("malloc.settings.thp", True, False), ("memory.huge_pages", True, False),
    ]  # fmt: skip
    other = check(environment, {**evidence, "malloc": {"allocator": "glibc"}}, {})
    assert not other[0].holds
