"""What became of each node, from the files that it left and what Slurm says of the job."""

from __future__ import annotations

import pytest
from envkit.bench.messages import NotInEffect, WorkerEnded
from envkit.bench.record_messages import UnusableRecord
from envkit.cluster.messages import OnNodes
from envkit.cluster.slurm import messages, table
from envkit.cluster.slurm.collect import collect, in_doubt, may_come, status
from envkit.cluster.slurm.follow import LATE, Followed
from envkit.cluster.slurm.node_status import Outcome
from envkit.common.messages import Clauses
from envkit.engines.messages import ExitStatus
from envkit.engines.slurm.client import Job
from envkit.messages import Printed
from envkit.rendering import text

from tests.cluster.slurm.conftest import JOB, settings
from tests.records import run_events, write
from tests.reports import events_of

ENDED = Job(JOB, "FAILED", "node[1-2]", "NonZeroExitCode")


def after(job, *names):
    """One job that has ended, and had these nodes."""
    return Followed((job,), dict.fromkeys(names, job))


@pytest.fixture
def left(folder):
    """A node leaves an outcome, and a record that ended so, or none."""

    def leave(name, exit_status=0, ended="complete", problem=None, job=JOB, **run):
        place = folder / name
        place.mkdir()
        if ended != "none":
            write(place, run_events(ended=ended, **run))
        Outcome(job, 1.0, None if exit_status is None else 2.0, exit_status, problem and Printed(problem)).write(place)

    return leave


def roll_call(folder, job=JOB, **missing):
    """All nodes have answered, each with what it does not find."""
    answers = "".join(f"answer {node} 1 {what}\n" for node, what in missing.items())
    (folder / f"roll-call-{job}").write_text(f"before node1 1\n{answers}after node1 1\n")


def states(results):
    return {one.name: one.state for one in results}


def test_each_way_that_a_node_can_end(folder, left):
    left("node1")
    left("node2", 130, "interrupted", "the job's time limit was near")
    left("node3", 2, "none", "no such thing")
    left("node4", 1, "a worker failed")
    left("node5", None, None)
    results = collect(folder, settings(), after(ENDED, *(f"node{number}" for number in range(1, 7))))
    assert [one.name for one in results] == [f"node{number}" for number in range(1, 7)]
    assert [one.state for one in results] == ["measured", "stopped", "refused", "failed", "lost", "absent"]
    problems = {one.name: one.problem for one in results}
    assert problems["node1"] is None
    assert problems["node2"] == Printed("the job's time limit was near")
    assert problems["node3"] == Printed("no such thing")
    log = str(folder / f"slurm-{JOB}.out")
    ended = messages.JobEndedAs(JOB, "FAILED", log, "NonZeroExitCode")
    assert problems["node4"] == messages.PartFailed(str(folder / "node4/log.txt"))
    assert problems["node5"] == messages.NotDone(messages.NOT_ENDED, ended)
    assert problems["node6"] == messages.NotDone(messages.NOT_BEGUN, ended)
    assert [one.samples for one in results] == [14, 14, 0, 14, 14, 0]


def test_a_dead_node_is_told_from_a_job_that_ended(folder, left):
    left("node2", None, None)
    (found,) = collect(folder, settings(), after(ENDED, "node2"), {"node2": "down (Not responding)"})
    assert found.problem == messages.NotDone(messages.NOT_ENDED, messages.OutOfService("down (Not responding)"))
    (found,) = collect(folder, settings(), after(Job(JOB, "TIMEOUT"), "node2"))
    assert found.problem == messages.NotDone(messages.NOT_ENDED, messages.JobEnded(messages.MEANINGS["TIMEOUT"]))


def test_not_in_effect_is_not_tried_again(folder, left):
    left("node1", 1, "not in effect")
    (found,) = collect(folder, settings(), after(ENDED, "node1"))
    assert (found.state, found.settled) == ("not in effect", True)
    assert found.problem == NotInEffect(("mine",))


def test_a_target_that_was_not_reached_is_not_tried_again_and_is_no_success(folder, left):
    left("node1")
    left("node2", 1, "none")
    write(folder / "node2", events_of(1, study={"epochs": 3, "until": "accuracy=0.99"}))
    results = collect(folder, settings(), after(ENDED, "node1", "node2"))
    found = results[1]
    assert (found.state, found.settled) == ("target not reached", True)
    assert isinstance(found.problem, Clauses)
    assert text(found.problem).startswith("baseline did not reach accuracy=0.99 in 3 epochs (best: ")
    assert (status(results, 2), status(results, 1)) == (1, 0)


def test_a_node_that_does_not_see_the_folder(folder, left):
    left("node1")
    roll_call(folder, node1="nothing", node2="folder")
    results = collect(folder, settings(), after(ENDED))
    assert states(results) == {"node1": "measured", "node2": "refused"}
    assert results[1].problem == messages.NotShared(str(folder))


def test_what_an_earlier_job_left_of_a_node_that_this_one_does_not_have(folder, left):
    left("node1", job="16")
    left("node2", 130, "interrupted", "Slurm told the job to end", job="16")
    left("node3", 2, "none", "no such thing", job="16")
    roll_call(folder, node4="nothing")
    results = collect(folder, settings(), after(ENDED, "node4"))
    # what was measured counts; a node that measured nothing was replaced
    assert states(results) == {"node1": "measured", "node2": "stopped", "node4": "absent"}
    assert states(collect(folder, settings(), None))["node3"] == "refused"


def test_a_node_of_the_job_with_an_earlier_jobs_outcome_did_not_begin(folder, left):
    left("node1", 130, "interrupted", "Slurm told the job to end", job="16")
    roll_call(folder, node1="nothing")
    (found,) = collect(folder, settings(), after(ENDED, "node1"))
    assert (found.state, found.problem.outcome) == ("lost", messages.NOT_BEGUN)


def test_nothing_came_back(folder):
    ended = after(ENDED, "node1", "node2")
    results = collect(folder, settings(), ended)
    assert states(results) == {"node1": "not shared", "node2": "not shared"}
    assert status(results, 2) == 2
    assert may_come(results, ended)  # a file system may be late
    assert results[0].problem == messages.LeftNothing(JOB, messages.NotShared(str(folder)))
    cancelled = after(Job(JOB, "CANCELLED"), "node1")
    results = collect(folder, settings(), cancelled)
    assert (states(results), may_come(results, cancelled)) == ({"node1": "absent"}, False)
    roll_call(folder, node1="nothing")
    assert states(collect(folder, settings(), ended)) == {"node1": "absent", "node2": "absent"}


def tasks(**states):
    """The jobs of a fleet, each on a node of its own."""
    numbered = enumerate(states.items(), 18)
    found = {name: Job(str(number), state, name, "None") for number, (name, state) in numbered}
    return Followed(tuple(found.values()), found)


def test_each_node_of_a_fleet_has_a_job_of_its_own(folder, left):
    left("node1", job="18")
    left("node2", None, None, job="19")
    left("node3", 1, "not in effect", job="20")
    left("node4", 0, "complete", job="16")
    ended = tasks(node1="COMPLETED", node2="NODE_FAIL", node3="COMPLETED", node4="PENDING", node5=LATE)
    results = collect(folder, settings(fleet=True), ended)
    assert states(results) == {
        "node1": "measured", "node2": "lost", "node3": "not in effect", "node4": "measured", "node5": "absent",
    }  # fmt: skip
    assert [one.result for one in results] == [None] * 5  # its report reads the records, one at a time
    problems = {one.name: one.problem for one in results}
    assert problems["node2"] == messages.NotDone(messages.NOT_ENDED, messages.JobEnded(messages.MEANINGS["NODE_FAIL"]))
    assert problems["node3"] == NotInEffect(("mine",))
    assert problems["node5"] == messages.NotDone(messages.NOT_BEGUN, messages.JobEnded(messages.MEANINGS[LATE]))
    assert in_doubt(results) == {"node2", "node5"}


@pytest.mark.parametrize(
    ("statuses", "wanted", "expected"),
    [((0, 0), 2, 0), ((0, 130), 2, 1), ((0, 2), 2, 2), ((0, 1), 2, 1), ((0, 2, 0), 2, 0), ((), 1, 1)],
)
def test_exit_status(folder, left, statuses, wanted, expected):
    for number, one in enumerate(statuses):
        left(f"node{number}", one, {0: "complete", 2: "none"}.get(one, "interrupted"), problem="x" if one else None)
    assert status(collect(folder, settings(), None), wanted) == expected


def test_nodes_in_the_order_of_their_numbers(folder, left):
    for number in (10, 9, 1):
        left(f"node{number}")
    assert [one.name for one in collect(folder, settings(), None)] == ["node1", "node9", "node10"]


def test_a_damaged_record_is_one_nodes_trouble(folder, left):
    left("node1")
    left("node2")
    (folder / "node2/record.jsonl").write_text("not one\n")
    results = collect(folder, settings(), None)
    assert states(results) == {"node1": "measured", "node2": "failed"}
    assert (type(results[1].problem), results[1].problem.line) == (UnusableRecord, 1)


def test_the_same_trouble_on_many_nodes_is_one_line(folder, left):
    for number in range(1, 8):
        left(f"node{number}", 2, "none", "no such thing" if number < 7 else "something else")
    found = table.problems(collect(folder, settings(), None))
    assert found == [
        OnNodes(("node1", "node2", "node3", "node4"), Printed("no such thing"), 2),
        OnNodes(("node7",), Printed("something else")),
    ]
    assert [text(one) for one in found] == [
        "node1, node2, node3, node4 and 2 more: no such thing",
        "node7: something else",
    ]


def test_a_worker_that_failed_is_told_with_what_it_printed_last(folder, left):
    left("node1", 1, "none")
    ended = WorkerEnded(ExitStatus(3))
    failure = {"block": 2, "arm": "mine", "worker_seconds": 1.0, "problem": ended.to_json()}
    events = run_events(ended="a worker failed")
    events.insert(-1, {"event": "failure", "time": 1.0, **failure, "stderr": "one\nout of luck\n"})
    write(folder / "node1", events)
    (found,) = collect(folder, settings(), None)
    problem = messages.WorkerFailed(3, "mine", ended, "out of luck")
    assert (found.state, found.problem) == ("failed", problem)
    assert found.to_json()["problem"] == problem.to_json()


def test_a_training_on_all_nodes_together_is_one_result(folder, left):
    left("all-nodes")
    ended = after(ENDED, "node1", "node2")
    (found,) = collect(folder, settings(joint=True), ended)
    assert (found.name, found.state, found.samples) == ("all-nodes", "measured", 14)
    assert status([found], settings(joint=True).runs) == 0


def test_a_node_that_does_not_take_part_is_named(folder, left):
    left("node2", 2, "none", "another image")
    roll_call(folder, node1="nothing", node2="nothing", node3="python")
    results = collect(folder, settings(joint=True, nodes=3), after(ENDED))
    assert states(results) == {"node2": "refused", "node3": "refused"}
    assert results[0].problem == Printed("another image")
    left("all-nodes", 130, "interrupted", "Slurm told the job to end")
    # a later job, with other nodes
    later = Job("18", "FAILED", "node[1,4]")
    roll_call(folder, "18", node1="nothing", node4="nothing")
    assert states(collect(folder, settings(joint=True), after(later, "node1", "node4"))) == {"all-nodes": "lost"}


def test_a_node_of_a_fleet_that_was_given_no_job_is_named(folder, left):
    left("node1")
    results = collect(folder, settings(fleet=True), after(ENDED, "node1"), {"node2": "drained (planted)"})
    assert states(results) == {"node1": "measured", "node2": "absent"}
    assert results[1].problem == messages.NotDone(messages.NOT_BEGUN, messages.OutOfService("drained (planted)"))
    assert status(results, 2) == 1


def test_a_node_of_a_fleet_that_refused_is_named_when_slurm_has_forgotten_its_job(folder, left):
    """The runner was killed meanwhile: it follows those jobs that Slurm still knows of."""
    left("node1", job="18")
    left("node2", 2, "none", "no such thing", job="17")
    results = collect(folder, settings(fleet=True), tasks(node1="COMPLETED"))
    assert states(results) == {"node1": "measured", "node2": "refused"}
    assert results[1].problem == Printed("no such thing")
    # of a job's nodes another one may have come to have it
    assert states(collect(folder, settings(), after(ENDED, "node1"))) == {"node1": "measured"}
