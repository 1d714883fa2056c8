"""Which blocks of a record count, and what their samples took."""

from __future__ import annotations

import math

import pytest
from envkit.bench.events import EVENTS
from envkit.bench.run import Run
from envkit.common import codec
from envkit.common.file_messages import OtherType
from envkit.stats.sequential import Design

from tests.records import lengths, samples
from tests.refusals import refusal
from tests.reports import events_of


def ratios(events, **options):
    """Of the complete blocks of the first arm that is compared, in order."""
    run = Run.parse(events)
    return [math.exp(one) for one in run.block_ratios(run.study.compared[0], **options)]


def without(events, *keys):
    """The same without the samples of these (block, arm)."""
    return [event for event in events if event["event"] != "sample" or (event["block"], event["arm"]) not in keys]


def test_samples_of_all_or_of_one_arm_in_the_order_measured():
    run = Run.parse(events_of(3))
    measured = [(block, arm.name) for block in range(3) for arm in run.study.order(block)]
    assert [(one.block, one.arm) for one in run.samples()] == measured
    assert [one.block for one in run.samples(run.study.compared[0])] == [0, 1, 2]


def test_a_block_is_complete_with_both_samples():
    events = without(events_of(6, others={"other": {}}), (1, "baseline"), (3, "mine"), (5, "other"))
    run = Run.parse(events)
    mine, other = run.study.compared
    assert run.complete_blocks(mine) == [0, 2, 4, 5]
    assert run.complete_blocks(other) == [0, 2, 3, 4]


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
    assert Run.parse(events).skipped_steps == 0
    assert ratios(events) == pytest.approx([13 / 3] * 2)
    next(event for event in events if event["event"] == "lengths")["skipped_steps"] = 1
    run = Run.parse(events)
    assert run.skipped_steps == 1
    assert run.timed_steps(run.study.reference) == [[1.0, 2.0]] * 2
    assert ratios(events) == pytest.approx([3 / 2] * 2)


def test_samples_of_other_batches_compare_by_the_time_per_image():
    larger = {"seconds": [3.0], "images_per_step": 128}
    events = events_of(2, baseline={"seconds": [2.0]}, mine=larger, workloads={"mine": "cnn-batch128"})
    assert ratios(events) == pytest.approx([2.0 / 64 / (3.0 / 128)] * 2)
    run = Run.parse(events)
    assert run.comparable_steps(run.study.compared[0], {0}) == [pytest.approx([1.0 / 128] * 3)]


def test_full_trainings_compare_by_their_whole_time():
    larger = {"seconds": [3.0], "images_per_step": 128, "full_steps": 2}
    fewer_steps = {"baseline": {"seconds": [4.0], "full_steps": 4}, "mine": larger}
    events = events_of(2, **fewer_steps, workloads={"mine": "cnn-batch128"}, study={"epochs": 1, "blocks": 2})
    assert {len(event["step_s"]) for event in samples(events)} == {2, 4}
    assert ratios(events) == pytest.approx([4.0 / 3.0] * 2)


def test_timed_steps_of_some_blocks():
    run = Run.parse(events_of(3, baseline={"seconds": [3.0, 6.0, 9.0]}))
    assert run.timed_steps(run.study.reference, {0, 2}) == [[1.0] * 3, [3.0] * 3]


def test_the_design_that_was_recorded():
    run = Run.parse(events_of(3, others={"other": {}}, looks=(8, 12)))
    assert run.design == Design(planned=12, looks=(8, 12), comparisons=2)
    assert Run.parse(events_of(1)).design is None


@pytest.mark.parametrize("kind", ["run", "sample", "lengths", "reference-kernel", "end"])
def test_a_key_that_is_missing_is_named(kind):
    """Each field without a default is one."""
    for name in codec.required(EVENTS[kind]):
        events = events_of(1)
        event = next(one for one in events if one["event"] == kind)
        if name != "event":
            del event[name]
            with pytest.raises(KeyError) as error:
                Run.parse(events)
            assert error.value.args == (name,)


@pytest.mark.parametrize("place", ["event", "usage"])
def test_half_of_a_character_in_an_unknown_key_is_no_crash(place):
    """JSON can hold it. Beside the fields of an event it is of no matter."""
    events = events_of(1)
    sample = samples(events)[0]
    (sample if place == "event" else sample[place])["\ud800"] = 1
    if place == "event":
        assert Run.parse(events) == Run.parse(events_of(1))
    else:
        assert refusal(Run.parse, events, error=codec.Misfit) == OtherType("usage")


def test_an_event_of_an_unknown_kind_is_none_of_the_run_s():
    events = events_of(1)
    unknown = {"event": "eclipse", "time": "noon", "shadow": [1]}
    assert Run.parse([*events[:-1], unknown, events[-1]]) == Run.parse(events)


def test_a_run_that_goes_on_has_not_ended():
    run = Run.parse(events_of(1))
    assert run.followed_by({"event": "resume", "time": 1.0}).ended is None
    assert run.followed_by({"event": "resume", "time": 1.0}).followed_by(events_of(1)[-1]).ended == "complete"


def test_the_plan_has_the_lengths_that_were_fixed():
    first, *_ = events_of(1)
    fixed = {**lengths(), "steps": {"cnn": 7}, "warmup_steps": {"cnn": 3}}
    run = Run.parse([first])
    assert run.followed_by(fixed).study == Run.parse([first, fixed]).study == run.study.sized({"cnn": 7}, {"cnn": 3})
