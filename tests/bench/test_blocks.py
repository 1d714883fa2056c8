"""Which blocks of a record count, and what their samples took."""

from __future__ import annotations

import math

import pytest
from envkit.bench.blocks import (
    block_ratios,
    comparable_steps,
    complete_blocks,
    recorded_design,
    samples,
    skipped_steps,
    timed_steps,
)
from envkit.bench.plan import Plan
from envkit.stats.sequential import Design

from tests.reports import events_of


def plan_of(events):
    return Plan.from_json(events[0]["plan"])


def ratios(events, **options):
    """Of the complete blocks of the first arm that is compared, in order."""
    plan = plan_of(events)
    return [math.exp(one) for one in block_ratios(events, plan, plan.compared[0], **options)]


def without(events, *keys):
    """The same without the samples of these (block, arm)."""
    return [event for event in events if event["event"] != "sample" or (event["block"], event["arm"]) not in keys]


def test_samples_of_all_or_of_one_arm_in_the_order_measured():
    events = events_of(3)
    plan = plan_of(events)
    measured = [(block, arm.name) for block in range(3) for arm in plan.order(block)]
    assert [(one["block"], one["arm"]) for one in samples(events)] == measured
    assert [one["block"] for one in samples(events, plan.compared[0])] == [0, 1, 2]


def test_a_block_is_complete_with_both_samples():
    events = without(events_of(6, others={"other": {}}), (1, "baseline"), (3, "mine"), (5, "other"))
    plan = plan_of(events)
    mine, other = plan.compared
    assert complete_blocks(events, plan, mine) == [0, 2, 4, 5]
    assert complete_blocks(events, plan, other) == [0, 2, 3, 4]


def test_ratios_of_complete_blocks_in_order_whatever_came_first():
    events = without(
        events_of(5, baseline={"seconds": [1, 2, 3, 4, 5]}, mine={"seconds": [1, 1, 1, 8, 10]}), (2, "mine")
    )
    assert ratios(events) == pytest.approx([1, 2, 0.5, 0.5])
    assert ratios(events, without={1: ["noise"], 2: ["noise"]}) == pytest.approx([1, 0.5, 0.5])
    assert ratios(events, without=range(5)) == []


def test_steps_that_still_warm_up_do_not_count():
    events = events_of(2, baseline={"seconds": [3.0]}, mine={"seconds": [3.0]})
    for event in samples(events):
        event["step_s"] = [10.0, 1.0, 2.0] if event["arm"] == "baseline" else [1.0, 1.0, 1.0]
    assert skipped_steps(events) == 0
    assert ratios(events) == pytest.approx([13 / 3] * 2)
    next(event for event in events if event["event"] == "lengths")["skipped_steps"] = 1
    assert skipped_steps(events) == 1
    assert timed_steps(events, plan_of(events).reference) == [[1.0, 2.0]] * 2
    assert ratios(events) == pytest.approx([3 / 2] * 2)


def test_samples_of_other_batches_compare_by_the_time_per_image():
    larger = {"seconds": [3.0], "images_per_step": 128}
    events = events_of(2, baseline={"seconds": [2.0]}, mine=larger, workloads={"mine": "cnn-batch128"})
    assert ratios(events) == pytest.approx([2.0 / 64 / (3.0 / 128)] * 2)
    plan = plan_of(events)
    assert comparable_steps(events, plan, plan.compared[0], {0}) == [pytest.approx([1.0 / 128] * 3)]


def test_full_trainings_compare_by_their_whole_time():
    larger = {"seconds": [3.0], "images_per_step": 128, "full_steps": 2}
    fewer_steps = {"baseline": {"seconds": [4.0], "full_steps": 4}, "mine": larger}
    events = events_of(2, **fewer_steps, workloads={"mine": "cnn-batch128"}, plan={"epochs": 1, "blocks": 2})
    assert {len(event["step_s"]) for event in samples(events)} == {2, 4}
    assert ratios(events) == pytest.approx([4.0 / 3.0] * 2)


def test_timed_steps_of_some_blocks():
    events = events_of(3, baseline={"seconds": [3.0, 6.0, 9.0]})
    reference = plan_of(events).reference
    assert timed_steps(events, reference, {0, 2}) == [[1.0] * 3, [3.0] * 3]


def test_the_design_that_was_recorded():
    events = events_of(3, others={"other": {}}, looks=(8, 12))
    assert recorded_design(events, plan_of(events)) == Design(planned=12, looks=(8, 12), comparisons=2)
    assert recorded_design(events_of(1), plan_of(events)) is None
