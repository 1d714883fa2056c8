"""Following jobs to their end, with what Slurm answers given in advance."""

from __future__ import annotations

import pytest
from envkit.cluster.slurm.follow import LATE, NotStarted, View, follow
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Job, NoAnswer
from envkit.messages import Printed


def task(number, state, reason="None"):
    return Job(str(number), state, f"node{number}", reason)


@pytest.fixture
def answers(monkeypatch, folder):
    """Follow through these answers, which take no time; returns what was followed, and what was cancelled.

    ``deaf`` is how often Slurm does not take what is to be cancelled.
    """

    def run(*given, deaf=0, **options):
        left = [*given]
        cancelled = []

        def cancel(numbers):
            cancelled.append(numbers)
            if len(cancelled) <= deaf:
                raise NoAnswer(Printed("busy"))

        def jobs(numbers, one_node):
            now = left.pop(0)
            if isinstance(now, Exception):
                raise now
            return now

        monkeypatch.setattr(client, "jobs", jobs)
        monkeypatch.setattr(client, "cancel", cancel)
        with View(quiet=True) as view:
            followed = follow("18", folder, view, sleep=lambda seconds: None, **options)
        assert not left
        return followed, cancelled

    return run


def test_a_fleet_has_ended_when_all_its_jobs_have(answers):
    followed, cancelled = answers(
        [task(18, "RUNNING"), task(19, "PENDING", "Resources")],
        [task(18, "COMPLETED"), task(19, "RUNNING")],
        NoAnswer(Printed("no answer")),
        [task(18, "COMPLETED"), task(19, "COMPLETED")],
    )
    assert {name: job.state for name, job in followed.nodes.items()} == {"node18": "COMPLETED", "node19": "COMPLETED"}
    assert (followed.states, cancelled) == ("COMPLETED", [])


def test_tasks_that_slurm_forgets_while_others_run(answers):
    """It does so some minutes after their end; how that was is remembered here, if it was seen."""
    followed, _ = answers(
        [task(18, "RUNNING"), task(19, "RUNNING"), task(20, "RUNNING")],
        [task(18, "COMPLETED"), task(19, "RUNNING"), task(20, "RUNNING")],
        [task(20, "COMPLETED")],
        [task(20, "COMPLETED")],
    )
    assert {name: job.state for name, job in followed.nodes.items()} == {
        "node18": "COMPLETED", "node19": "UNKNOWN", "node20": "COMPLETED",
    }  # fmt: skip


def test_a_state_that_a_requeued_job_passes_through_is_looked_at_twice(answers):
    followed, _ = answers([task(18, "PREEMPTED")], [task(18, "PENDING")], [task(18, "FAILED")], [task(18, "FAILED")])
    assert followed.states == "FAILED"


def test_the_nodes_that_a_job_had_before_it_was_requeued(answers):
    followed, _ = answers(
        [Job("18", "RUNNING", "node1")], [Job("18", "PENDING")], [Job("18", "RUNNING", "node2")],
        [Job("18", "COMPLETED", "node2")],
    )  # fmt: skip
    assert {name: job.state for name, job in followed.nodes.items()} == {"node1": "COMPLETED", "node2": "COMPLETED"}


def test_none_has_started_in_time(answers):
    waiting = [task(18, "PENDING", "Resources"), task(19, "PENDING", "Resources")]
    with pytest.raises(NotStarted, match=r"Resources .the nodes that it could use are busy"):
        answers(waiting, start_within_s=0)


def test_tasks_that_have_not_started_in_time_are_cancelled_and_the_others_go_on(answers):
    waiting = task(19, "PENDING", "ReqNodeNotAvail")
    followed, cancelled = answers(
        [task(18, "RUNNING"), waiting],
        [task(18, "RUNNING"), task(19, "CANCELLED")],
        [task(18, "COMPLETED"), task(19, "CANCELLED")],
        start_within_s=0,
    )
    assert cancelled == ["19"]
    assert followed.nodes["node18"].state == "COMPLETED"
    late = followed.nodes["node19"]
    assert (late.state, late.reason) == (LATE, waiting.why)


def test_what_slurm_did_not_take_is_cancelled_the_next_time(answers):
    waiting = task(19, "PENDING", "Resources")
    followed, cancelled = answers(
        [task(18, "RUNNING"), waiting],
        [task(18, "RUNNING"), waiting],
        [task(18, "COMPLETED"), task(19, "CANCELLED")],
        start_within_s=0,
        deaf=1,
    )
    assert cancelled == ["19", "19"]
    assert followed.nodes["node19"].state == LATE
