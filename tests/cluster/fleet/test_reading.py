"""What is kept of nodes' records, and which can't be used."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from envkit.bench.messages import WorkerEnded
from envkit.bench.record import FILE_NAME
from envkit.bench.record_messages import NotUnderstood, UnusableRecord
from envkit.bench.study import WorkloadSpec
from envkit.checks.effect_messages import Value
from envkit.cluster.fleet import messages, reading
from envkit.cluster.fleet.extract import ShortSample, read_node, shortened
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.common import codec
from envkit.common.documents import BadDocument
from envkit.common.errors import InputError
from envkit.common.file_messages import NotJson, OtherType
from envkit.common.messages import About
from envkit.engines.messages import ExitStatus
from envkit.rendering import text

from tests import records
from tests.cluster.fleet.nodes import REFERENCE_KERNEL_S, STEP_S, fleet, node, node_events
from tests.processes import gone, until
from tests.refusals import refusal


def reason(folder, profile=None):
    found = read_node(folder, profile)
    assert isinstance(found, LeftOut)
    assert found.name == folder.name
    return found.reason


def kept(folder, profile=None):
    found = read_node(folder, profile)
    assert isinstance(found, Node), found
    return found


# --- lines ---


AWKWARD = 'he said ", "evidence": { and ", "losses": [1] and {"event": '


def complete(event):
    """Return all that the line of a shortened sample says."""
    return json.loads(event["line"])


@pytest.mark.parametrize("event", [event for event in node_events("n") if event["event"] != "end"][:4])
def test_a_shortened_line_says_the_same(event):
    if event["event"] != "sample":
        assert shortened(json.dumps(event).encode()) == event
        return
    event = {**event, "stderr": AWKWARD}
    short = shortened(json.dumps(event).encode())
    assert complete(short) == event
    for name in ("event", "time", "arm", "block", "seconds", "step_s", "usage", "digests"):
        assert short[name] == event[name]
    assert not short.keys() & {"losses", "evidence"}
    assert [asdict(check) for check in codec.parse(short, ShortSample).complete().checks] == event["checks"]


def test_a_line_that_somebody_else_wrote_is_read_as_it_is():
    event = next(event for event in node_events("n") if event["event"] == "sample")
    reordered = {"event": "sample", "evidence": event["evidence"], **event}
    for line in (json.dumps(reordered), json.dumps(event, separators=(",", ":"))):
        short = shortened(line.encode())
        assert short["step_s"] == event["step_s"]
        assert complete(short)["evidence"] == event["evidence"]


@pytest.mark.parametrize("cut", [20, 200, -2, -40])
def test_a_cut_line_that_ran_into_the_next_is_damaged(cut):
    line = json.dumps(next(event for event in node_events("n") if event["event"] == "sample")).encode()
    said = refusal(shortened, line[:cut] + line, error=BadDocument)
    assert isinstance(said, NotJson)
    assert "line 1 column" in said.reason


# --- one node ---


def test_what_is_kept(tmp_path):
    events = node_events("n1", noise=0.0, began=records.BEGUN + 5, fingerprint={"memory_bytes": 2**34})
    found = kept(records.write(tmp_path / "n1", events))
    assert (found.name, found.profile, found.workload) == ("n1", "mine", "cnn")
    assert (found.began, found.finished) == (records.BEGUN + 5, True)
    assert found.step_s == pytest.approx([STEP_S] * 10)
    assert (found.memory_bytes, found.facts["thp enabled"]) == (2**34, "madvise")
    assert (found.reference_kernel_s, found.samples_with_interference, found.clock_mhz) == (REFERENCE_KERNEL_S, 0, None)
    assert found.kind == "Simulated CPU (model 1), 4 usable CPUs (x86_64)"


def test_steps_in_which_training_warmed_up_do_not_count(tmp_path):
    events = node_events("n1", noise=0.0)
    for event in events:
        if event["event"] == "sample":
            event["step_s"][0] = 1.0
    events.insert(1, records.lengths(skipped_steps=1))
    assert kept(records.write(tmp_path / "n1", events)).step_s == pytest.approx([STEP_S] * 10)


def test_disturbed_samples_are_counted(tmp_path):
    found = kept(node(tmp_path, "n1", usage={"machine_swapped_bytes": 2**25}))
    assert (found.samples_with_interference, found.interference) == (10, "it swapped")


def test_a_record_that_a_kill_cut_short(tmp_path):
    path = node(tmp_path, "n1") / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:700])
    found = kept(path.parent)
    assert len(found.step_s) == 9
    assert not found.finished
    path.write_bytes(lines[0][:500])
    found = reason(path.parent)
    assert (type(found), found.file) == (UnusableRecord, FILE_NAME)
    assert text(found).startswith(f"{FILE_NAME}: is not the record of a run: it has no whole line")


def test_a_damaged_line_is_named(tmp_path):
    path = node(tmp_path, "n1") / FILE_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], lines[4][:300] + b"\n", *lines[5:]]))
    assert text(reason(path.parent)) == f"{FILE_NAME}:5: damaged line; remove it to read the rest"


def test_a_worker_that_failed(tmp_path):
    events = node_events("n1", samples=2, ended="a worker failed")
    problem = WorkerEnded(ExitStatus(3))
    failure = {"block": 2, "arm": "mine", "worker_seconds": 1.0, "problem": problem.to_json()}
    events.insert(-1, {"event": "failure", "time": 1.0, **failure, "stderr": "one\nout of luck\n"})
    found = reason(records.write(tmp_path / "n1", events))
    assert found == messages.NodeFailed(problem, "out of luck")


@pytest.mark.parametrize("memory_bytes", [True, -1, 2**63, "16 GiB"])
def test_a_size_of_memory_that_is_none(tmp_path, memory_bytes):
    found = reason(node(tmp_path, "n1", fingerprint={"memory_bytes": memory_bytes}))
    assert found == UnusableRecord(FILE_NAME, NotUnderstood(OtherType("memory_bytes")))


def test_a_profile_that_was_not_in_effect(tmp_path):
    events = node_events("n1", ended="not in effect")
    events[-2]["evidence"]["openmp"]["runtime"] = "intel"
    records.judge(events)
    wanted = messages.ProfileNotInEffect("mine", "openmp.runtime", Value("gnu"), Value("intel"))
    assert reason(records.write(tmp_path / "n1", events)) == wanted
    # killed before it could say so
    assert reason(records.write(tmp_path / "n1", events[:-1])) == wanted


def test_several_profiles(tmp_path):
    folder = node(tmp_path, "n1", profiles=("baseline", "mine", "other"))
    assert reason(folder) == messages.SeveralProfiles(("mine", "other"))
    assert kept(folder, "other").profile == "other"
    assert reason(folder, "none") == messages.OtherProfiles("none", ("baseline", "mine", "other"))
    assert kept(node(tmp_path, "n2", profiles=("baseline", "mine"))).profile == "mine"


def test_several_workloads(tmp_path):
    both = {name: WorkloadSpec(1, 3) for name in ("loader", "segmentation")}
    assert reason(node(tmp_path, "n1", workloads=both)) == messages.SeveralWorkloads()


@pytest.mark.parametrize("time", [-5.0, 1e15, float("nan")])
def test_a_time_that_is_none(tmp_path, time):
    events = node_events("n1")
    events[0]["time"] = time
    assert type(reason(records.write(tmp_path / "n1", events))) is messages.InvalidBeginning


@pytest.mark.parametrize("step_s", [[0.0] * 3, [-1.0] * 3, [float("nan")] * 3])
def test_a_sample_that_took_no_time(tmp_path, step_s):
    events = node_events("n1")
    events[4]["step_s"] = step_s
    assert reason(records.write(tmp_path / "n1", events)) == messages.NoTime()


def test_what_is_not_understood(tmp_path):
    events = node_events("n1")
    del events[0]["engines"]["local"]["inspection"]["fingerprint"]["cpu_model"]
    said = reason(records.write(tmp_path / "n1", events))
    assert text(said).endswith("an event lacks 'cpu_model'; the record can't be used")


# --- a folder of nodes ---


def test_all_nodes_in_order_and_those_without_a_record(tmp_path):
    fleet(tmp_path, 3)
    (tmp_path / "n01-empty").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    nodes, left_out = reading.read(tmp_path, None)
    assert [one.name for one in nodes] == ["n00", "n01", "n02"]
    assert left_out == [LeftOut("n01-empty", messages.NoRecord(FILE_NAME))]


def test_several_processes_read_the_same_as_one(tmp_path, monkeypatch):
    fleet(tmp_path, 7, samples=6)
    (tmp_path / "n03" / FILE_NAME).write_text("nonsense\n")
    alone = reading.read(tmp_path, None)
    monkeypatch.setattr(reading, "RECORDS_PER_PROCESS", 2)
    monkeypatch.setattr(reading, "CHUNK", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert reading.read(tmp_path, None) == alone
    assert len(alone[0]) == 6


def test_the_folder_of_one_node(tmp_path, monkeypatch):
    monkeypatch.chdir(node(tmp_path, "n1"))
    nodes, _ = reading.read(Path(), None)
    assert [one.name for one in nodes] == ["n1"]


def test_a_folder_without_records(tmp_path):
    with pytest.raises(InputError) as error:
        reading.read(tmp_path, None)
    assert error.value.message == messages.NoRecords(str(tmp_path), FILE_NAME)


def test_no_node_that_can_be_used(tmp_path):
    fleet(tmp_path, 2, profiles=("baseline", "a", "b"))
    with pytest.raises(InputError) as error:
        reading.read(tmp_path, None)
    first = About("n00", messages.SeveralProfiles(("a", "b")))
    assert error.value.message == messages.NoUsableNode(str(tmp_path), 2, first)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: one process reads")
def test_nothing_goes_on_reading_when_the_report_is_killed(tmp_path, start):
    for number in range(2 * reading.RECORDS_PER_PROCESS):
        path = tmp_path / f"n{number:04}" / FILE_NAME
        path.parent.mkdir()
        os.mkfifo(path)  # who reads it waits for a writer
    process = start("fleet", "report", tmp_path)
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")

    def readers():
        # a process on one CPU, or one that has ended, would never have two
        assert len(os.sched_getaffinity(process.pid)) > 1, "the process that started it was bound to one CPU"
        assert process.poll() is None, process.communicate()
        children = listed.read_text().split()
        return len(children) == 2 and children

    children = until(readers)
    process.kill()
    process.wait()
    until(lambda: all(gone(int(child)) for child in children))
