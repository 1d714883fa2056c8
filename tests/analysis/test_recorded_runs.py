"""Which runs a folder holds, and what is known of them before and after they are read."""

from __future__ import annotations

import pytest
from envkit.analysis import recorded_runs
from envkit.analysis.messages import FOLDER_OF_RUNS
from envkit.common.messages import Unreadable
from envkit.messages import Printed
from envkit.rendering import text

from tests.records import BEGUN, arm, run_events, write
from tests.refusals import refusal


def test_only_folders_with_a_record_are_runs(tmp_path):
    write(tmp_path / "b", run_events())
    write(tmp_path / "a", run_events())
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    assert recorded_runs.folders(tmp_path) == [tmp_path / "a", tmp_path / "b"]


def test_the_folder_of_a_run_is_that_run(tmp_path):
    assert recorded_runs.folders(write(tmp_path / "a", run_events())) == [tmp_path / "a"]


def test_a_folder_that_is_not_there(tmp_path):
    place = tmp_path / "none"
    unreadable = Unreadable(str(place), Printed("No such file or directory"), FOLDER_OF_RUNS)
    assert refusal(recorded_runs.folders, place) == unreadable


def test_the_latest_run_is_the_first_whatever_the_folders_are_called(tmp_path):
    found = [
        write(tmp_path / name, run_events(time=BEGUN + later)) for name, later in (("a", 5), ("b", 500), ("c", 50))
    ]
    begun, unread = recorded_runs.beginnings(found)
    assert [one.folder.name for one in begun] == ["b", "c", "a"]
    assert unread == []


def test_runs_are_read_only_when_they_are_asked_for(tmp_path):
    found = [write(tmp_path / name, run_events(time=BEGUN + ord(name))) for name in "ab"]
    begun, unread = recorded_runs.beginnings(found)
    reading = recorded_runs.runs(begun, unread, lambda run: True)
    assert next(reading).folder.name == "b"
    (tmp_path / "a/record.jsonl").write_text("gone bad meanwhile\n")
    assert list(reading) == []
    assert [(one.folder.name, text(one.problem)) for one in unread] == [
        ("a", "record.jsonl:1: damaged line; remove it to read the rest")
    ]


def test_blocks_that_lack_an_arm_do_not_count(tmp_path):
    events = [one for one in run_events() if (one.get("block"), one.get("arm")) != (6, "mine")]
    begun, unread = recorded_runs.beginnings([write(tmp_path, events)])
    (run,) = recorded_runs.runs(begun, unread, lambda run: True)
    assert run.blocks == 6


@pytest.mark.parametrize(
    ("others", "profile"), [([], "baseline"), ([arm("mine")], "mine"), ([arm("again", "baseline")], "baseline")]
)
def test_a_profile_is_what_is_compared_and_not_what_it_is_compared_with(tmp_path, others, profile):
    begun, _ = recorded_runs.beginnings([write(tmp_path, run_events(arm("baseline"), *others))])
    assert [one.profile for one in begun[0].study.subjects] == [profile]
