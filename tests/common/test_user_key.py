"""The user's key: made once, whoever is first, and refused where others may know it."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from envkit.common import user_key
from envkit.common.key_messages import (
    IS_LINK,
    NO_FILE,
    OF_OTHER,
    OPEN,
    OTHER_LENGTH,
    BadKey,
    ForeignFolder,
    NoHome,
    WritableByOthers,
)
from envkit.common.running_messages import NotMade
from envkit.common.user_key import NoKey

from tests.refusals import refusal


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where this test's user has the key, in a folder that is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/config"))
    return tmp_path / "home/config/envkit/record.key"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
def test_it_is_made_once_and_for_this_user_alone(place, mask):
    before = os.umask(mask)
    try:
        place.parents[2].mkdir(mode=0o700)
        place.parents[2].chmod(0o700)
        made = user_key.find_or_make() if mask != 0o777 else None
    finally:
        os.umask(before)
    made = made or user_key.find_or_make()
    assert (len(made), user_key.find(), user_key.find_or_make()) == (32, made, made)
    assert (mode(place), mode(place.parent)) == (0o600, 0o700)
    assert [path.name for path in place.parent.iterdir()] == ["record.key"]


def test_to_look_for_it_makes_none(place):
    assert user_key.find() is None
    assert not place.parent.exists()


def make(barrier, answers):
    barrier.wait()
    answers.put(user_key.find_or_make())


def test_of_processes_that_make_it_at_once_all_have_the_same(place):
    context = multiprocessing.get_context("fork")
    for _ in range(2):  # each is a copy of this whole process
        barrier, answers = context.Barrier(8), context.Queue()
        processes = [context.Process(target=make, args=(barrier, answers)) for _ in range(8)]
        for process in processes:
            process.start()
        found = {answers.get(timeout=60) for _ in processes}
        for process in processes:
            process.join()
        assert found == {place.read_bytes()}
        assert [path.name for path in place.parent.iterdir()] == ["record.key"]
        place.unlink()


def test_without_an_absolute_folder_it_is_in_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    user_key.find_or_make()
    assert (tmp_path / ".config/envkit/record.key").is_file()


def is_open(place):
    place.chmod(0o640)


def is_short(place):
    place.write_bytes(b"x" * 31)


def is_long(place):
    place.write_bytes(b"x" * 33)


def is_a_link(place):
    place.rename(place.with_name("other"))
    place.symlink_to("other")


def is_a_folder(place):
    place.unlink()
    place.mkdir()


def is_a_pipe(place):
    place.unlink()
    os.mkfifo(place, 0o600)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (is_open, (OPEN, "0640")),
        (is_short, (OTHER_LENGTH, None)),
        (is_long, (OTHER_LENGTH, None)),
        (is_a_link, (IS_LINK, None)),
        (is_a_folder, (NO_FILE, None)),
        (is_a_pipe, (NO_FILE, None)),
    ],
)
def test_what_may_be_no_secret_is_refused_with_the_mend(place, spoil, fault):
    user_key.find_or_make()
    spoil(place)
    for ask in (user_key.find, user_key.find_or_make):
        assert refusal(ask) == BadKey(str(place), fault[0], ("rm", str(place)), fault[1])


def test_a_folder_that_others_write_to_is_refused(place):
    user_key.find_or_make()
    place.parent.chmod(0o770)
    folder = str(place.parent)
    assert refusal(user_key.find) == WritableByOthers(folder, ("chmod", "go-w", folder))


def test_a_key_of_another_user_is_refused(place, monkeypatch):
    user_key.find_or_make()
    real = os.fstat

    def another(descriptor):
        found = list(real(descriptor))
        found[4] += 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", another)
    assert refusal(user_key.find).fault == OF_OTHER


def test_a_home_of_another_user_gets_none(place, monkeypatch):
    """As with sudo, which may leave HOME as it was: the user could not read a key of root's there."""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert isinstance(refusal(user_key.find_or_make, error=NoKey), ForeignFolder)
    assert user_key.find() is None
    assert not place.exists()


def test_a_user_without_a_home_has_none(monkeypatch):
    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", none)
    assert refusal(user_key.find_or_make, error=NoKey) == NoHome()
    assert user_key.find() is None


def test_where_nothing_can_be_written_there_is_none(place, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    assert refusal(user_key.find_or_make, error=NoKey) == NotMade(str(place), "No space left on device")
    assert [*place.parent.iterdir()] == []
