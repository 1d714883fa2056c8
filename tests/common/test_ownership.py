"""A file that names a program is taken only where nobody else can have written it, and the user's own always are."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from envkit.common import ownership
from envkit.common.errors import InputError
from envkit.common.messages import FolderOpen, OfAnother, Unreadable, WritableFile
from envkit.messages import Printed

OTHER = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setattr(ownership, "CONTAINER", ())
    monkeypatch.delenv("SUDO_UID", raising=False)
    path = tmp_path / "mine/job.yaml"
    path.parent.mkdir()
    path.write_text("command: [python, train.py]\n")
    path.chmod(0o644)
    return path


def refusal(path):
    try:
        ownership.require_own(path)
    except InputError as error:
        return error.message
    return None


@pytest.fixture
def groups(monkeypatch):
    """Groups of this machine: ``groups(name, members, primary)``; ``primary`` are the users that have it as theirs."""
    own = pwd.getpwuid(os.geteuid())

    def plant(name, members=(), primary=(own.pw_name,)):
        users = [SimpleNamespace(pw_name=one, pw_gid=7000, pw_uid=own.pw_uid if one == own.pw_name else 4000)
                 for one in primary]  # fmt: skip
        monkeypatch.setattr(grp, "getgrgid", lambda gid: SimpleNamespace(gr_name=name, gr_mem=[*members]))
        monkeypatch.setattr(pwd, "getpwall", lambda: users)
        real = Path.stat

        def stat(path, **how):
            found = [*real(path, **how)]
            found[5] = 7000
            return os.stat_result(found)

        monkeypatch.setattr(Path, "stat", stat)
        return own.pw_name

    return plant


def test_the_users_own_file_is_taken(job):
    assert refusal(job) is None
    job.chmod(0o600)
    assert refusal(job) is None


def test_what_others_can_write_is_refused_with_its_mend(job):
    job.chmod(0o666)
    assert refusal(job) == WritableFile(str(job), ("chmod", "go-w", str(job)))
    subprocess.run(refusal(job).mend, check=True)
    assert refusal(job) is None


def test_a_file_that_has_vanished_meanwhile_is_refused_in_one_line(job):
    job.unlink()
    assert refusal(job) == Unreadable(str(job), Printed(os.strerror(errno.ENOENT)))


def test_what_others_can_replace_is_refused_with_its_mend(job):
    for folder in (job.parent, job.parent.parent):
        folder.chmod(0o777)
        assert refusal(job) == FolderOpen(str(job), str(folder), ("chmod", "go-w", str(folder)))
        folder.chmod(0o1777)  # as /tmp: only the owner of a file can remove it
        assert refusal(job) is None
        folder.chmod(0o755)


def test_a_link_is_asked_for_where_it_is_and_where_it_leads(job, tmp_path):
    (tmp_path / "links").mkdir()
    link = tmp_path / "links/job.yaml"
    link.symlink_to(job)
    assert refusal(link) is None
    link.parent.chmod(0o777)
    assert isinstance(refusal(link), FolderOpen)
    link.parent.chmod(0o755)
    job.parent.chmod(0o777)
    assert isinstance(refusal(link), FolderOpen)


def test_umask_002_with_a_group_of_ones_own_is_fine(job, groups):
    name = groups(pwd.getpwuid(os.geteuid()).pw_name)
    job.chmod(0o664)
    job.parent.chmod(0o2775)
    assert refusal(job) is None
    groups(name, members=[name])
    assert refusal(job) is None


@pytest.mark.parametrize(
    ("group", "members", "primary"),
    [
        ("lab", [], []),  # its users may not be listed
        (None, ["somebody"], []),
        (None, [], ["somebody"]),
    ],
)
def test_a_group_that_others_are_in_can_write(job, groups, group, members, primary):
    own = pwd.getpwuid(os.geteuid()).pw_name
    groups(group or own, members, [own, *primary])
    job.chmod(0o664)
    assert isinstance(refusal(job), WritableFile)
    job.chmod(0o644)
    job.parent.chmod(0o775)
    assert isinstance(refusal(job), FolderOpen)


@root_only
def test_another_users_file_is_refused_as_is_ones_own_in_a_folder_of_theirs(job):
    os.chown(job, OTHER, OTHER)
    assert refusal(job) == OfAnother(str(job), pwd.getpwuid(OTHER).pw_name)
    os.chown(job, 0, 0)
    os.chown(job.parent, OTHER, OTHER)
    assert refusal(job) == OfAnother(str(job.parent), pwd.getpwuid(OTHER).pw_name)


@root_only
def test_root_by_sudo_and_in_a_container_takes_the_callers_files(job, monkeypatch, tmp_path):
    for path in (job, job.parent):
        os.chown(path, OTHER, OTHER)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    assert refusal(job) is None
    monkeypatch.delenv("SUDO_UID")
    monkeypatch.setattr(ownership, "CONTAINER", (tmp_path,))
    assert refusal(job) is None
    job.chmod(0o666)
    assert isinstance(refusal(job), WritableFile)


@root_only
def test_a_link_of_another_user_is_refused_wherever_it_leads(job, tmp_path):
    """Its owner could have it lead to another file between this check and the reading, in a sticky folder too."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for name, target, given in (("job.yaml", job, "job.yaml"), ("jobs", job.parent, "jobs/job.yaml")):
        (shared / name).symlink_to(target)
        assert refusal(shared / given) is None
        os.chown(shared / name, OTHER, OTHER, follow_symlinks=False)
        found = refusal(shared / given)
        assert isinstance(found, OfAnother)
        assert found.file == str(shared / name)


@root_only
def test_an_ordinary_user_takes_what_root_wrote_and_not_what_a_third_one_did(monkeypatch):
    monkeypatch.setattr(ownership, "CONTAINER", ())

    def said(job):
        """What an ordinary user is told, in a process of theirs."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
            os.write(writing, type(refusal(job)).__name__.encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        try:
            return os.read(reading, 100).decode()
        finally:
            os.close(reading)

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        job = Path(folder) / "job.yaml"
        job.touch(0o644)
        assert said(job) == "NoneType"
        os.chown(job, 4000, 4000)
        assert said(job) == "OfAnother"
        os.chown(job, OTHER, OTHER)
        assert said(job) == "NoneType"
