"""The file that nodes share: what killed nodes leave in it, and folders that can't hold it."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from envkit.common.errors import InputError
from envkit.messages import Printed
from envkit.tuning import journal
from envkit.tuning.journal import LONGEST_PAUSE_S, Journal
from envkit.tuning.messages import DamagedJournal, JournalUnusable, NoLinks, NotShared
from envkit.tuning.shared_trials import FILE_NAME, publish, published, storage_in

from tests.refusals import refusal
from tests.simulation import PROJECT

# Four processes that say so many things, as nodes would. They are forked from one: to import the tuner takes a second.
NODES = """
import os, sys
from pathlib import Path
from envkit.tuning import journal
journal.ABANDONED_S = 2.0
for node in range(4):
    if not os.fork():
        file = journal.Journal(Path(sys.argv[1]))
        for number in range(20):
            file.append_logs([{"node": node, "number": number}])
            journal.ABANDONED_S = 30.0  # the killed one's lock is gone, and who has it now may wait long for a CPU
        os._exit(0)
sys.exit(any(os.wait()[1] for node in range(4)))
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / FILE_NAME


def test_what_several_nodes_say_at_once_is_all_there_whatever_lock_a_killed_one_left(path):
    lock = path.with_name(f"{FILE_NAME}.lock")
    lock.symlink_to("killed")
    command = [sys.executable, "-c", NODES, path]
    nodes = subprocess.run(command, cwd=PROJECT, timeout=240, capture_output=True, text=True, check=False)
    assert (nodes.returncode, nodes.stderr) == (0, "")
    found = [(one["node"], one["number"]) for one in Journal(path).read_logs(0)]
    assert sorted(found) == [(node, number) for node in range(4) for number in range(20)]
    assert not os.path.lexists(lock)


@pytest.mark.parametrize("left", ['{"half', '{"half' * 2000])
def test_half_a_line_is_left_out_and_the_next_one_is_whole(path, left):
    first, second = Journal(path), Journal(path)
    first.append_logs([{"a": 1}])
    with path.open("a") as file:
        file.write(left)
    assert [*second.read_logs(0)] == [{"a": 1}]
    first.append_logs([{"b": 2}])
    assert [*second.read_logs(1)] == [{"b": 2}]
    assert [*Journal(path).read_logs(0)] == [{"a": 1}, {"b": 2}]


def test_a_lock_that_was_taken_away_from_a_node_that_was_suspended_is_left_to_its_new_owner(path):
    file = Journal(path)
    lock = path.with_name(f"{FILE_NAME}.lock")
    with file._lock():
        lock.unlink()
        lock.symlink_to("another node")
    assert str(lock.readlink()) == "another node"


def test_who_waits_for_a_lock_looks_ever_less_often_and_never_waits_longer_than_the_longest_pause(path, monkeypatch):
    lock, pauses = path.with_name(f"{FILE_NAME}.lock"), []
    lock.symlink_to("another node")

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 30:
            lock.unlink()

    monkeypatch.setattr(journal.time, "sleep", sleep)
    with Journal(path)._lock():
        pass
    assert pauses[0] <= 0.001
    assert pauses[1] <= 0.002
    assert LONGEST_PAUSE_S / 2 <= max(pauses) <= LONGEST_PAUSE_S
    assert len({*pauses[-10:]}) == 10  # nodes that began together do not go on together


def test_a_disk_that_is_full_leaves_the_journal_as_it_was(path):
    publish(storage_in(path.parent), "node1", "type", "one")
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
    try:
        with pytest.raises(InputError) as caught:
            publish(storage_in(path.parent), "node2", "type", "another")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    go_on = ("envkit", "tune", "--resume", str(path.parent))
    assert caught.value.message == JournalUnusable(str(path), Printed("File too large"), go_on)
    assert path.read_bytes() == before
    assert published(storage_in(path.parent), "type", str) == {"node1": "one"}


def test_a_folder_whose_file_system_makes_no_links(path, monkeypatch):
    def refuse(*words):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(InputError) as caught:
        storage_in(path.parent)
    assert caught.value.message == NoLinks(str(path.parent), "Operation not permitted")


@pytest.mark.parametrize(
    ("content", "message"),
    [("{nonsense\n{more\n", partial(DamagedJournal, line=1)), ('{"op_code": 17}\n', NotShared)],
)
def test_a_journal_that_is_damaged(path, content, message):
    path.write_text(content)
    assert refusal(storage_in, path.parent) == message(file=str(path))


def test_a_journal_that_is_damaged_while_nodes_search(path):
    storage = storage_in(path.parent)
    with path.open("a") as file:
        file.write("\0\0\0\n")
    damaged = refusal(publish, storage, "node1", "type", "one")
    assert isinstance(damaged, DamagedJournal)
    assert (damaged.file, damaged.line) == (str(path), 2)
