"""Where profiles are looked up, and which one a name stands for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from envkit.common import ownership
from envkit.common.errors import InputError
from envkit.common.messages import OfAnother, WritableFile
from envkit.profiles import places, profile
from envkit.profiles.messages import PassedOver, ProjectProfile, UnknownProfile
from envkit.profiles.places import PROFILE_FOLDER, project_folder
from envkit.rendering import text

SHIPPED = PROFILE_FOLDER / "glibc-retain.yaml"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The folder of a project's profiles; the user stands two folders below the project."""
    (tmp_path / "project/envprofiles").mkdir(parents=True)
    (tmp_path / "project/src/deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project/src/deep")
    return tmp_path / "project/envprofiles"


@pytest.fixture
def users(own_surroundings):
    folder = own_surroundings / "config/envkit/profiles"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def told(monkeypatch):
    found = []
    monkeypatch.setattr(profile, "announce", found.append)
    return found


def test_the_project_comes_first_then_the_user_then_the_kit(project, users, write_profile):
    assert profile.load("glibc-retain").path == SHIPPED
    write_profile("glibc-retain", "", users)
    assert profile.load("glibc-retain").path == users / "glibc-retain.yaml"
    write_profile("glibc-retain", "", project)
    assert profile.load("glibc-retain").path == project / "glibc-retain.yaml"
    kinds = {profile.place_of(profile.load(name)) for name in ("glibc-retain", "jemalloc")}
    assert kinds == {"project", "shipped"}


def test_a_name_that_the_project_takes_is_said_once(project, write_profile, told):
    path = write_profile("glibc-retain", "", project)
    other = write_profile("mine", "", project)
    for _ in range(2):
        profile.load("glibc-retain")
        profile.load("mine")
        profile.load(str(path))  # who names the file knows
        profile.load("jemalloc")
    assert told == [ProjectProfile("glibc-retain", str(path), str(SHIPPED)), ProjectProfile("mine", str(other))]


def test_the_baseline_is_the_kits_wherever_one_stands(project, users, write_profile, told):
    for folder in (project, users):
        write_profile("baseline", "env: {OMP_NUM_THREADS: 1}\n", folder)
    assert profile.load("baseline").path == PROFILE_FOLDER / "baseline.yaml"
    assert told == []


def test_tuned_is_this_machines_whatever_the_project_has(project, users, write_profile):
    for name in ("tuned", profile.tuned_name()):
        write_profile(name, "", project)
    write_profile(profile.tuned_name(), "env: {A: 1}\n", users)
    assert profile.load("tuned").path == users / f"{profile.tuned_name()}.yaml"


def test_what_is_extended_is_beside_it_or_in_a_later_place(project, users, write_profile):
    write_profile("glibc-retain", "extends: glibc-retain\nenv: {MINE: 1}\n", project)
    env = profile.load("glibc-retain").env
    assert env["MINE"] == "1"
    assert "GLIBC_TUNABLES" in env  # the shipped one's
    write_profile("base", "env: {WHOSE: project}\n", project)
    write_profile("base", "env: {WHOSE: user}\n", users)
    write_profile("child", "extends: base\n", users)
    assert profile.load("child").env == {"WHOSE": "user"}  # a project can't change the user's own


def test_a_project_ends_at_its_repository_and_at_home(project, monkeypatch):
    assert project_folder() == project
    (project.parent / "src/.git").mkdir()
    assert project_folder() is None
    (project.parent / "src/.git").rmdir()
    monkeypatch.setenv("HOME", str(project.parent / "src"))
    assert project_folder() is None


def test_the_checkout_is_no_project(monkeypatch):
    monkeypatch.chdir(PROFILE_FOLDER.parent / "docs")
    assert project_folder() is None


@pytest.fixture
def another(monkeypatch):
    """Another user: ``another(path)`` says that they own a file or folder."""
    owned = []
    stat = Path.stat

    def told(path, **how):
        found = stat(path, **how)
        changed = [*found]
        changed[4] = 12345 if path in owned else os.geteuid()
        return os.stat_result(changed)

    monkeypatch.setattr(Path, "stat", told)
    return owned.append


@pytest.mark.parametrize("by", ["name", "path", "extends"])
@pytest.mark.parametrize("how", ["others can write", "another's"])
def test_what_somebody_else_may_have_written_elsewhere_is_refused(users, write_profile, another, monkeypatch, by, how):
    monkeypatch.setattr(ownership, "CONTAINER", ())
    monkeypatch.delenv("SUDO_UID", raising=False)
    path = write_profile("mine", "", users)
    child = write_profile("child", "extends: mine\n", users)
    named = {"name": "mine", "path": str(path), "extends": str(child)}[by]
    path.chmod(0o600)
    assert profile.load(named).name in ("mine", "child")
    if how == "another's":
        another(path)
    else:
        path.chmod(0o666)
    with pytest.raises(InputError) as caught:
        profile.load(named)
    assert isinstance(caught.value.message, OfAnother if how == "another's" else WritableFile)
    assert caught.value.message.file == str(path)


@pytest.mark.parametrize("what", ["folder", "file"])
@pytest.mark.parametrize("how", ["others can write", "another's"])
def test_what_somebody_else_may_have_written_is_passed_over_and_named(project, write_profile, another, told, what, how):
    path = write_profile("glibc-retain", "prefix: [anything]\n", project)
    distrusted = project if what == "folder" else path
    if how == "another's":
        another(distrusted)
    else:
        distrusted.chmod(0o777)
    for _ in range(2):
        assert profile.load("glibc-retain").path == SHIPPED
    assert profile.load("jemalloc").path.parent == PROFILE_FOLDER  # which the project has not
    assert told == [PassedOver(str(distrusted))]
    assert profile.anywhere("glibc-retain") == "glibc-retain"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "*", "[", ""])
def test_a_strange_name_is_nowhere(project, write_profile, told, name):
    write_profile("mine", "", project).chmod(0o666)
    with pytest.raises(InputError):
        profile.load(name)
    assert told == []


def test_roots_project_is_trusted(project, write_profile, monkeypatch):
    path = write_profile("mine", "", project)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if path.stat().st_uid == 0:
        assert profile.load("mine").path == path
    else:
        assert not profile.exists("mine")


def test_a_project_extends_nothing_that_somebody_else_may_have_written(project, write_profile, told):
    write_profile("mine", "extends: glibc-retain\n", project)
    write_profile("glibc-retain", "prefix: [anything]\n", project).chmod(0o666)
    assert profile.load("mine").prefix == ()
    assert PassedOver(str(project / "glibc-retain.yaml")) in told


def test_what_a_project_starts_and_preloads_is_said(project, write_profile, told):
    path = write_profile("mine", "prefix: [numactl, -l]\npreload: [jemalloc]\n", project)
    profile.load("mine")
    assert told == [ProjectProfile("mine", str(path), None, ("numactl", "-l"), ("jemalloc",))]
    assert text(told[0]).endswith("; it starts your command with: numactl -l; it preloads jemalloc")


def test_nodes_are_given_the_projects_file(project, write_profile):
    path = write_profile("mine", "", project)
    assert [profile.anywhere(name) for name in ("mine", "jemalloc", "x.yaml")] == [
        str(path), "jemalloc", os.path.abspath("x.yaml"),  # noqa: PTH100
    ]  # fmt: skip


def test_a_name_that_is_nowhere(project, users, write_profile):
    write_profile("mine", "", users)
    with pytest.raises(InputError) as caught:
        profile.load("mien")
    folders = tuple(str(one) for one in (project, users, PROFILE_FOLDER))
    assert caught.value.message == UnknownProfile("mien", folders, ("mine",))


def test_a_current_folder_that_was_removed_is_no_project(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert places.places()[-1].kind == "shipped"
