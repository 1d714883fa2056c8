"""What is seen of nodes while they measure."""

from __future__ import annotations

import json

import pytest
from envkit.cluster.slurm.follow import View, Watch, of_job, of_jobs
from envkit.cluster.slurm.messages import InState, JobIs, JobsAre
from envkit.cluster.slurm.node_status import Outcome
from envkit.engines.slurm.client import Job
from envkit.messages import Printed
from envkit.rendering import text

from tests.cluster.slurm.conftest import JOB
from tests.records import run_events


@pytest.fixture
def place(folder):
    made = folder / "node1"
    made.mkdir()
    Outcome(JOB, 1.0).write(made)
    return made


def test_a_record_that_grows(folder, place):
    lines = [json.dumps(event) + "\n" for event in run_events()]
    watch = Watch(folder)
    path = place / "record.jsonl"
    path.write_text("".join(lines[:4]) + lines[4][:20])
    seen = watch.look(["node1", "node2"], [JOB])
    assert (seen["node1"].state, seen["node1"].samples, len(seen["node1"].blocks)) == ("measuring", 3, 2)
    assert (seen["node1"].spent_s, seen["node1"].budget_s) == (6.0, 240.0)
    assert seen["node2"].state == "waiting"
    path.write_text("".join(lines))
    assert watch.look(["node1"], [JOB])["node1"].samples == 14


def test_the_end_of_a_node_and_what_an_earlier_job_left(folder, place):
    watch = Watch(folder)
    Outcome(JOB, 1.0, 2.0, 2, Printed("no such thing")).write(place)
    assert watch.look([], [JOB])["node1"].state == "refused"
    Outcome("16", 1.0, 2.0, 130, Printed("stopped")).write(place)
    assert Watch(folder).look([], [JOB])["node1"].state == "waiting"


def test_lines_only_where_something_changes(folder, place, capsys):
    watch = Watch(folder)
    waits, runs = Job(JOB, "PENDING", "", "Priority"), Job(JOB, "RUNNING", "node1", "None")
    with View(quiet=False) as view:
        for job in (waits, waits, runs, runs):
            view.show([job], watch.look([], [JOB]))
    assert capsys.readouterr().err.splitlines() == [
        "job 17 waits: Priority (other jobs come first)", "node1: measuring", "job 17: running on node1",
    ]  # fmt: skip


def test_quiet_says_nothing(folder, place, capsys):
    with View(quiet=True) as view:
        view.show([Job(JOB, "RUNNING")], Watch(folder).look([], [JOB]))
    assert capsys.readouterr() == ("", "")


def test_a_state_in_words():
    assert of_job(Job(JOB, "NODE_FAIL", "node[1-2]")) == JobIs(JOB, "node fail", "node[1-2]")


def test_the_jobs_of_a_fleet_in_numbers():
    tasks = [Job(str(number), "RUNNING", f"node{number}", "None") for number in (18, 19)]
    waiting = [Job(str(number), "PENDING", f"node{number}", "Resources") for number in (20, 21, 22)]
    held = Job("23", "PENDING", "node23", "ReqNodeNotAvail, UnavailableNodes:node23")
    assert text(of_jobs([*tasks, *waiting, held])) == (
        "6 jobs: 2 running, 4 pending; most of those that wait: Resources (the nodes that it could use are busy)"
    )
    assert of_jobs(tasks) == JobsAre(2, (InState(2, "running"),))
    assert of_jobs(tasks[:1]) == JobIs("18", "running", "node18")


def test_of_a_fleet_only_nodes_whose_job_has_begun_are_looked_at(folder, place):
    watch = Watch(folder)
    assert [sight.state for sight in watch.look(["node1", "node2"], [JOB], active=[]).values()] == ["waiting"] * 2
    assert watch.look(["node1", "node2"], [JOB], active=["node1"])["node1"].state == "measuring"
