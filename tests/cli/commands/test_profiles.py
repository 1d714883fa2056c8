from __future__ import annotations

import json

import pytest
from envkit.cli.commands.profile_messages import NotForThisMachine, OfPlace
from envkit.profiles import profile
from envkit.profiles.messages import HiddenProfile, PassedOver
from envkit.profiles.places import PROFILE_FOLDER
from envkit.rendering import text


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Stand outside of the checkout, whose folder of profiles is the shipped one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def project(tmp_path, write_profile):
    folder = tmp_path / "envprofiles"
    folder.mkdir()
    write_profile("glibc-retain", "env: {A: 1}\n", folder)
    return folder


def in_one(printed):
    """What was printed, however its lines were broken."""
    return "".join(printed.split())


def test_every_profile_is_listed(cli):
    result = cli("profiles").ended(0, stderr="")
    titles = {one["name"]: one["title"] for one in json.loads(cli("profiles", "--json").stdout)}
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    listed = {words[0]: words[1] for words in lines if words and words[0] in titles}
    assert listed == titles  # in one line each, with its whole title
    assert [*titles] == profile.names()
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_those_that_do_not_apply_come_last_by_reason(cli):
    listed = json.loads(cli("profiles", "--json").stdout)
    reasons = [one["does_not_apply"] for one in listed if one["does_not_apply"]]
    printed = cli("profiles").stdout.split("\n\n")
    assert len(printed) == 1 + len(set(reasons)) > 2
    assert [line.split()[0] for line in printed[0].splitlines()[1:]] == [
        one["name"] for one in listed if not one["does_not_apply"]
    ]
    for reason, group in zip(dict.fromkeys(reasons), printed[1:], strict=True):
        heading, _, rows = group.partition(":\n")
        assert in_one(heading) == in_one(text(NotForThisMachine(reason)))
        assert [line.split()[0] for line in rows.splitlines()] == [
            one["name"] for one in listed if one["does_not_apply"] == reason
        ]


def test_json(cli):
    listed = json.loads(cli("profiles", "--json").stdout)
    assert [one["name"] for one in listed] == profile.names()
    assert next(each for each in listed if each["name"] == "baseline") == {
        "name": "baseline", "title": "Nothing set", "preload": [], "numerics": "same", "does_not_apply": None,
        "from": "shipped", "file": str(PROFILE_FOLDER / "baseline.yaml"), "hides": [],
    }  # fmt: skip


def test_it_says_from_where_each_comes_and_what_is_hidden(cli, project, own_surroundings, write_profile):
    users = own_surroundings / "config/envkit/profiles"
    users.mkdir(parents=True)
    write_profile("mine", "", users)
    listed = {one["name"]: one for one in json.loads(cli("profiles", "--json").stdout)}
    assert {name: one["from"] for name, one in listed.items() if one["from"] != "shipped"} == {
        "glibc-retain": "project", "mine": "user",
    }  # fmt: skip
    file, shipped = str(project / "glibc-retain.yaml"), str(PROFILE_FOLDER / "glibc-retain.yaml")
    assert (listed["glibc-retain"]["file"], listed["glibc-retain"]["hides"]) == (file, [shipped])
    assert len(listed) == len(profile.names()) + 1
    printed = cli("profiles").stdout
    assert in_one(text(HiddenProfile("glibc-retain", shipped, file))) in in_one(printed)
    assert in_one(f"{text(OfPlace('project', str(project)))}:glibc-retain") in in_one(printed)


def test_a_folder_that_others_can_write_to_is_passed_over_and_named(cli, project):
    project.chmod(0o777)
    assert in_one(text(PassedOver(str(project)))) in in_one(cli("profiles").stdout)
    assert "project" not in {one["from"] for one in json.loads(cli("profiles", "--json").stdout)}


def test_show_says_which_file_it_is(cli, project, simulation):
    shown = json.loads(cli("show", "glibc-retain", "--json", "--python", simulation.python).stdout)
    assert (shown["from"], shown["file"]) == ("project", str(project / "glibc-retain.yaml"))
    assert str(project / "glibc-retain.yaml") in cli("show", "glibc-retain", "--python", simulation.python).stdout


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_one_bad_file_is_named_and_the_others_are_listed(cli, project, write_profile, how):
    (project / "bad.yaml").write_text("name: bad\n")
    write_profile("child", "extends: bad\n", project)
    result = cli("profiles", *how).ended(1)
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"envkit: {project}/bad.yaml")
    assert "jemalloc" in result.stdout
    if how:
        assert {one["name"] for one in json.loads(result.stdout)} == {*profile.names()}
