"""``envkit tune`` tries those shipped profiles first of which the most is expected."""

from __future__ import annotations

import json

import pytest
from envkit.tuning import session

from tests.cli.commands.tune.conftest import events

NAMES = [f"arenas-{number}" for number in range(1, 9)]


@pytest.fixture
def expect(shipped, write_profile, monkeypatch):
    """Let these gains be expected, by profile; ``trials`` are those that they were asked for by."""
    for number, name in enumerate(NAMES, 1):
        write_profile(name, f"env: {{MALLOC_ARENA_MAX: {number}}}\n", folder=shipped)
    trials = []

    def are(**gains):
        def of(trial, profiles):
            trials.append(trial)
            return {one.profile.name: gains[one.profile.name] for one in profiles if one.profile.name in gains}

        monkeypatch.setattr(session, "gains", of)
        return trials

    return are


def tried(tmp_path):
    return [event["shipped"] for event in events(tmp_path, "candidate") if event["shipped"]]


def test_those_first_of_which_the_most_is_expected_and_then_as_ever(expect, tuned, tmp_path):
    trials = expect(**{"arenas-7": 1.2, "arenas-8": 1.3})
    tuned()
    order = ["arenas-8", "arenas-7", *NAMES[:6], "known"]
    assert tried(tmp_path) == order
    (recorded,) = events(tmp_path, "order")
    assert (recorded["shipped"], recorded["expected"]) == (order, {"arenas-7": 1.2, "arenas-8": 1.3})
    # by the trial of the baseline before the first round, which costs nothing more
    assert [trial.event for trial in trials] == ["warm-up"]
    assert set(events(tmp_path, "round")[0]["order"]) == {-1, 0, 1, 2, 3, 4, 5}


def cut(tmp_path, after, without=()):
    """Leave of the record what a kill leaves after so many trials, without some kinds of events."""
    path = tmp_path / "tuning/record.jsonl"
    kept, trials = [], 0
    for line in path.read_text().splitlines():
        event = json.loads(line)["event"]
        trials += event == "trial"
        if trials > after:
            break
        if event not in without:
            kept.append(line)
    path.write_text("\n".join(kept) + "\n")


@pytest.mark.parametrize("after", [0, 3, 9])
def test_a_search_that_goes_on_keeps_its_order(expect, tuned, cli, tmp_path, after):
    expect(**{"arenas-8": 1.3})
    tuned()
    whole = tried(tmp_path)
    cut(tmp_path, after)
    expect(**{"arenas-7": 1.3})  # by another version, say
    assert cli("tune", "--resume", tmp_path / "tuning").returncode == 0
    assert list(dict.fromkeys(tried(tmp_path))) == whole
    assert len(events(tmp_path, "order")) == 1


def test_one_that_an_earlier_version_began_goes_on_in_that_one_s_order(expect, tuned, cli, tmp_path):
    expect()
    tuned()
    whole = tried(tmp_path)
    assert whole == [*NAMES, "known"]
    cut(tmp_path, 4, without=["order"])
    expect(**{"arenas-8": 1.3})
    assert cli("tune", "--resume", tmp_path / "tuning").returncode == 0
    assert tried(tmp_path) == whole
    assert events(tmp_path, "order") == []


def test_nothing_is_expected_where_every_candidate_is_measured(expect, tuned, tmp_path):
    trials = expect(**{"arenas-8": 1.3})
    tuned("--exhaustive", "--blocks", 2, budget=None)
    assert (trials, events(tmp_path, "order")) == ([], [])
