"""Nodes that tune together and are cut short: what was measured stays, and they go on."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from envkit.bench import record
from envkit.cli import node_tuning
from envkit.cli.node_messages import ToldToEnd
from envkit.cluster.slurm import node_status
from envkit.profiles import profile
from envkit.tuning.shared_trials import FILE_NAME, FOUND, Results, published, storage_in

from tests.cluster.slurm.conftest import NODES, gain
from tests.simulated_worker import inspection

SPACE_OF_ONE = """\
name: small
title: A test
parameters:
  spin: {variable: GOMP_SPINCOUNT, values: [unset, 0, 1000, 5000, 10000]}
  wide:
    choices:
      unset:
      on: {env: {OMP_DYNAMIC: "true"}, needs: {physical_cores: 3}}
"""
KIND, SEARCH, CONFIRM = node_tuning.KIND, node_tuning.SEARCH, node_tuning.CONFIRM


@pytest.fixture
def told_to_end(engine):
    """Have the node be told to end while its so-many-th worker trains, counted from now on."""

    def at(worker):
        last = engine.trained + worker

        def end(variables):
            if engine.trained == last:
                raise KeyboardInterrupt

        engine.misbehave = end

    return at


def tuned(folder, node):
    return record.read(folder / node, "tune")


def trials(folder, node):
    return [event for event in tuned(folder, node) if event["event"] == "trial"]


def told(folder):
    """How many ratios nodes have told each other."""
    found = published(storage_in(folder), FOUND, Results).values()
    return sum(len(ratios) for of_node in found for ratios in of_node.ratios.values())


def forget(folder, which):
    """Take out of the journal what a node says that it has found, where ``which`` holds of it."""
    journal = (folder / FILE_NAME).read_text().splitlines(keepends=True)
    found = [json.loads(line).get("user_attr", {}).get(f"{FOUND} node1") for line in journal]
    kept = [line for line, one in zip(journal, found, strict=True) if one is None or not which(one)]
    (folder / FILE_NAME).write_text("".join(kept))


def compared(folder, node):
    """How many ratios a node has measured."""
    rounds = {event["round"] for event in trials(folder, node) if event["candidate"] == -1}
    return sum(event["candidate"] >= 0 and event["round"] in rounds for event in trials(folder, node))


@pytest.mark.parametrize("worker", [1, 3, 9, 10, 17])
def test_a_node_that_is_told_to_end_in_the_search_goes_on(submitted, stage, folder, written, told_to_end, cli, worker):
    """In the warm-up, at the begin of a round, in the middle of one."""
    submitted()
    stage(KIND)
    told_to_end(worker)
    assert stage(SEARCH, ["node1"]) == [130]
    assert node_status.read(folder / "node1").problem == ToldToEnd()
    before = trials(folder, "node1") if worker > 2 else []
    told_to_end(-1)
    stage(KIND)
    assert stage(SEARCH) == [0, 0]
    assert trials(folder, "node1")[: len(before)] == before
    for node in NODES:
        assert max(Counter((event["round"], event["candidate"]) for event in trials(folder, node)).values()) == 1
    assert told(folder) == sum(compared(folder, node) for node in NODES)
    assert stage(CONFIRM) == [0, 0]
    assert cli("tune", "--resume", folder).returncode == 0
    assert profile.load(str(written)).env == {"GOMP_SPINCOUNT": "1000"}


@pytest.mark.parametrize("kind", ["candidate", "promoted", "round"])
def test_a_node_that_is_killed_before_it_records_what_it_claimed_measures_it(submitted, stage, folder, kind):
    submitted()
    stage(KIND)
    stage(SEARCH, ["node1"])
    file = folder / "node1" / record.FILE_NAME
    lines = file.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if line.startswith(b'{"event": "%s"' % kind.encode()))
    file.write_bytes(b"".join(lines[:last]))
    kept = compared(folder, "node1")
    forget(folder, lambda found: sum(map(len, found["ratios"].values())) > kept)
    assert stage(SEARCH) == [0, 0]
    storage = storage_in(folder)
    claimed = [trial.number for trial in storage.get_all_trials(0) if trial.user_attrs["node"] == "node1"]
    assert {*map(str, claimed)} <= published(storage, FOUND, Results)["node1"].ratios.keys()


def test_what_a_node_measured_and_could_not_tell_is_told_when_it_goes_on(submitted, stage, folder):
    submitted(budget_s=40.0)
    stage(KIND)
    stage(SEARCH, ["node1"])
    forget(folder, lambda found: True)
    assert told(folder) == 0
    stage(SEARCH, ["node1"])
    assert told(folder) == compared(folder, "node1") > 0


def test_half_a_line_that_a_killed_node_left_harms_nobody(submitted, stage, folder):
    submitted()
    stage(KIND)
    with (folder / FILE_NAME).open("a") as journal:
        journal.write('{"op_code":4,"worker_id":"')
    assert stage(SEARCH) == [0, 0]
    assert stage(CONFIRM) == [0, 0]


def test_a_node_that_is_told_to_end_in_the_confirmation_goes_on(submitted, stage, folder, told_to_end, cli, written):
    submitted()
    stage(KIND)
    stage(SEARCH)
    told_to_end(7)
    assert stage(CONFIRM, ["node1"]) == [130]
    place = folder / "node1" / record.CONFIRMATION
    before = [event for event in record.read(place) if event["event"] == "sample"]
    assert before
    told_to_end(-1)
    stage(KIND)  # the job is requeued
    assert stage(SEARCH) == [0, 0]
    assert stage(CONFIRM) == [0, 0]
    assert [event for event in record.read(place) if event["event"] == "sample"][: len(before)] == before
    assert cli("tune", "--resume", folder).returncode == 0
    assert profile.load(str(written)).env == {"GOMP_SPINCOUNT": "1000"}


def test_a_node_that_was_told_to_end_does_not_confirm(submitted, stage, folder, told_to_end):
    """The script may know of another status only, as that of a node that died."""
    submitted()
    stage(KIND)
    stage(SEARCH, ["node2"])
    told_to_end(5)
    assert stage(SEARCH, ["node1"]) == [130]
    told_to_end(-1)
    assert stage(CONFIRM, ["node1"]) == [130]
    assert node_tuning.chosen(folder) is None


def test_a_node_that_was_killed_in_its_warm_up_confirms_what_the_others_found(submitted, stage, folder):
    submitted()
    stage(KIND)
    stage(SEARCH)
    file = folder / "node1" / record.FILE_NAME
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    assert stage(CONFIRM) == [0, 0]


def test_a_node_that_could_not_say_its_type_says_it_when_it_searches(submitted, stage, folder):
    submitted()
    stage(KIND, ["node2"])
    assert stage(SEARCH) == [0, 0]


def test_what_failed_on_a_node_whose_baseline_fails_too_is_tried_by_others(submitted, stage, folder, engine):
    submitted()
    stage(KIND)
    begun = engine.trained + 8
    engine.misbehave = lambda variables: "was killed" if engine.trained >= begun else None
    assert stage(SEARCH, ["node1"]) == [1]
    failed = {event["candidate"] for event in tuned(folder, "node1") if event["event"] == "failure"}
    assert len(failed) > 1
    engine.misbehave = lambda variables: None
    assert stage(SEARCH, ["node2"]) == [0]
    assert failed - {-1} <= {event["candidate"] for event in trials(folder, "node2")}


@pytest.mark.parametrize("larger", [0, 1])
def test_nodes_of_which_one_has_more_to_choose_from_search_together(
    submitted, stage, folder, simulation, engine, larger
):
    """As of libraries that only one has on its disk; the one with fewer chooses what both confirm."""
    submitted(space=SPACE_OF_ONE)
    engine.gain = lambda variables: gain(variables) - 0.1 * ("OMP_DYNAMIC" in variables)
    facts = inspection([], {})["facts"]

    def part(name, turn):
        simulation.inspection(facts={**facts, "physical_cores": 4 if turn == larger else 2})
        return stage(name, [NODES[turn]])

    stage(KIND)
    assert [part(SEARCH, turn) for turn in (0, 1)] == [[0], [0]]
    titles = [trial.user_attrs["title"] for trial in storage_in(folder).get_all_trials(0)]
    assert any("wide=on" in title for title in titles)
    assert [part(CONFIRM, turn) for turn in (1 - larger, larger)] == [[0], [0]]
