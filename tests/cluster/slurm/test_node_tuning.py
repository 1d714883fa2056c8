"""Nodes that tune together, each stage in this process as Slurm would start it; times are planted."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace

import pytest
from envkit.bench import record
from envkit.bench.record_messages import NotUnderstood, UnusableRecord
from envkit.cli import node_tuning
from envkit.cli.node_messages import OtherType
from envkit.cluster.slurm import node_status
from envkit.common.file_messages import OtherType as OtherValue
from envkit.profiles import profile
from envkit.rendering import text
from envkit.tuning import confirm
from envkit.tuning.progress_messages import NoRoom

from tests.cluster.slurm.conftest import GAIN, JOB, MORE, NODES
from tests.tuning.planted_engine import SMALL_SPACE

MANY = ("OMP_THREAD_LIMIT", "OMP_MAX_ACTIVE_LEVELS", "MKL_NUM_THREADS")


def test_two_nodes_search_together_confirm_and_write_the_profile_of_their_type(
    submitted, stage, folder, cli, written, engine
):
    submitted()
    assert stage(node_tuning.KIND) == [0, 0]
    assert stage(node_tuning.SEARCH) == [0, 0]
    assert stage(node_tuning.CONFIRM) == [0, 0]
    result = cli("tune", "--resume", folder, "--json").ended(0)
    found = json.loads(result.stdout)
    assert (found["best"], found["verdict"]["nodes"]) == ("tuned", [*NODES])
    tuned = found["verdict"]["found"]["tuned"]
    assert tuned["speedup"]["ratio"] == pytest.approx(math.exp(GAIN + MORE / 2), rel=0.02)
    assert tuned["ratios"] == pytest.approx([math.exp(GAIN), math.exp(GAIN + MORE)], rel=0.02)
    made = profile.load(str(written))
    assert made.env == {"GOMP_SPINCOUNT": "1000"}
    seen = record.read(folder / "node1", "tune")[0]["engines"]["local"]["inspection"]
    assert made.cpu == seen["fingerprint"]["cpu_model"]
    assert "on 2 nodes of" in made.reason
    said = " ".join(cli("tune", "--resume", folder).stdout.split())
    assert "on 2 nodes: faster; speedups of nodes differ by" in said
    assert "(SD, at most " in said
    assert "; another node of the type: " in said


def test_a_candidate_that_another_node_has_tried_is_no_first_choice(submitted, stage, folder):
    submitted(budget_s=40.0)
    stage(node_tuning.KIND)
    stage(node_tuning.SEARCH)
    first = []
    for node in NODES:
        events = record.read(folder / node, "tune")
        explored = [event["order"] for event in events if event["event"] == "round" and event["stage"] == "trials"]
        first.append({number for order in explored[:1] for number in order if number >= 0})
    assert all(first)
    assert first[0].isdisjoint(first[1])


def test_a_node_with_nothing_left_to_claim_measures_what_the_others_found(submitted, stage, folder):
    submitted(budget_s=200.0)
    stage(node_tuning.KIND)
    stage(node_tuning.SEARCH)
    tried = [{event["candidate"] for event in record.read(folder / node, "tune") if event["event"] == "trial"}
             for node in NODES]  # fmt: skip
    assert len(tried[0]) > 15  # all that this space has
    assert len(tried[0] & tried[1]) > 5


def test_a_node_of_another_type_is_left_out_and_named(submitted, stage, folder, monkeypatch):
    submitted(nodes=3)
    here = node_tuning.fingerprint()

    def seen():
        other = os.environ["SLURMD_NODENAME"] == "node2"
        return {**here, **({"cpu_model": "Another CPU"} if other else {})}

    monkeypatch.setattr(node_tuning, "fingerprint", seen)
    nodes = [*NODES, "node3"]
    roll = "".join(f"answer {node} 1.0 nothing\n" for node in nodes)
    (folder / f"roll-call-{JOB}").write_text(f"before node1 1.0\n{roll}after node1 1.0\n")
    assert stage(node_tuning.KIND, nodes) == [0, 0, 0]
    assert stage(node_tuning.SEARCH, nodes) == [0, 2, 0]
    problem = node_status.read(folder / "node2").problem
    assert isinstance(problem, OtherType)
    assert problem.kind.startswith("Another CPU")


def test_a_budget_without_room_names_one_that_has_it(submitted, stage, folder):
    submitted(budget_s=15.0)
    stage(node_tuning.KIND)
    assert stage(node_tuning.SEARCH) == [2, 2]
    assert isinstance(node_status.read(folder / "node1").problem, NoRoom)


def test_a_space_with_more_candidates_than_the_time_has_room_for(submitted, stage, folder, cli, written):
    counts = "".join(f"  more{one}: {{variable: {name}, values: [unset, 1, 2, 3]}}\n" for one, name in enumerate(MANY))
    submitted(budget_s=60.0, space=SMALL_SPACE + counts)
    assert [stage(name) for name in (node_tuning.KIND, node_tuning.SEARCH, node_tuning.CONFIRM)] == [[0, 0]] * 3
    result = cli("tune", "--resume", folder, "--json").ended(0)
    found = json.loads(result.stdout)
    assert found["candidates"] < 100  # of 1,280
    assert found["written"] in (str(written), None)


def test_a_node_in_the_place_of_one_that_is_gone_confirms_what_was_found(submitted, stage, folder):
    submitted()
    stage(node_tuning.KIND, ["node1"])
    assert stage(node_tuning.SEARCH, ["node1"]) == [0]
    assert stage(node_tuning.CONFIRM, ["node1"]) == [0]
    stage(node_tuning.KIND, ["node2"])
    assert stage(node_tuning.SEARCH, ["node2"]) == [0]
    assert stage(node_tuning.CONFIRM, ["node2"]) == [0]
    assert [event["event"] for event in record.read(folder / "node2", "tune")].count("round") == 0
    arms = [record.read(folder / node / record.CONFIRMATION)[0]["environments"]["tuned"] for node in NODES]
    assert arms[0]["variables"] == arms[1]["variables"] == {"GOMP_SPINCOUNT": "1000"}


@pytest.mark.parametrize("damaged", NODES)
def test_a_damaged_record_of_a_search_is_one_line_that_names_the_file(submitted, stage, folder, damaged):
    """Of this node, or of another whose trials count as well."""
    submitted()
    stage(node_tuning.KIND)
    assert stage(node_tuning.SEARCH) == [0, 0]
    path = folder / damaged / record.FILE_NAME
    events = [json.loads(line) for line in path.read_text().splitlines()]
    line = next(number for number, event in enumerate(events) if event["event"] == "trial")
    events[line]["step_s"] = "0.1"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert stage(node_tuning.CONFIRM, ["node1"]) == [2]
    problem = node_status.read(folder / "node1").problem
    assert problem == UnusableRecord(str(path), NotUnderstood(OtherValue("step_s")))
    assert (
        text(problem)
        == f"{path}: is not understood ('step_s' has another type than the kit writes); the record can't be used"
    )


def test_a_file_that_the_nodes_share_names_no_profile_to_copy(submitted, stage, folder, cli, written, monkeypatch):
    """Whoever can write there could have another's file taken for a shipped profile."""
    submitted()
    assert [stage(name) for name in (node_tuning.KIND, node_tuning.SEARCH, node_tuning.CONFIRM)] == [[0, 0]] * 3
    chosen = node_tuning.chosen(folder)
    evil = [replace(entry, shipped="/tmp/evil.yaml") for entry in chosen.candidates]
    planted = replace(chosen, shipped=chosen.best, candidates=evil)
    monkeypatch.setattr(node_tuning, "chosen", lambda folder: planted)
    monkeypatch.setattr(confirm, "winner", lambda *_: confirm.SHIPPED)
    result = cli("tune", "--resume", folder)
    assert (result.returncode, written.exists()) == (2, False)
    assert "the nodes chose '/tmp/evil.yaml', which is no shipped profile; start a new tuning" in result.stderr
