"""What a record says, from events as simulated workers leave them, and how it is printed."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from runner import report
from runner.environment import Environment
from runner.plan import Arm, Plan
from runner.summary import summarise
from tests.simulated_worker import inspection, sample
from tests.simulation import STEADY, times


def events_of(blocks=7, numerics="same", mine=None, ended="precise enough", epochs=0, **run):
    """The events of a run of ``blocks`` blocks, in which the workers of the profile ``mine`` behave as given."""
    arms = (Arm("baseline", "baseline", "local"), Arm("mine", "mine", "local"))
    plan = Plan(arms, {}, "cnn", 1, 3, epochs, "/data", 240.0, 0.04, 60.0, 1)
    environments = {
        arm.name: Environment(arm.name, "A test", {}, {}, (), {"openmp.runtime": "gnu"}, numerics) for arm in arms
    }
    behaviours = {"baseline": {"seconds": STEADY}, "mine": {"seconds": times(0.5), **(mine or {})}}
    first = {
        "event": "run",
        "plan": plan.to_json(),
        "engines": {
            "local": {
                "engine": {"name": "local", "version": "6.1", "image": "/sim/bin/python"},
                "inspection": inspection([], {}),
            }
        },
        "data_source": "folder /data",
        "environments": {name: environment.to_json() for name, environment in environments.items()},
        "commands": {arm.name: f"env -i {arm.name}" for arm in arms},
        "findings": [],
        "removed_variables": {},
        "kept_variables": {},
        **run,
    }
    measured = [
        {"event": "sample", "block": block, "arm": arm.name, "worker_seconds": 1.0, "stderr": "",
         **sample(list(plan.worker_arguments()), behaviours[arm.name], block, {})}
        for block in range(blocks) for arm in arms
    ]  # fmt: skip
    return [first, *measured, *([{"event": "end", "reason": ended}] if ended else [])]


def printed(events):
    out = io.StringIO()
    report.show(summarise(events), "some/folder", Console(file=out, width=80))
    return out.getvalue()


def test_medians_per_arm():
    baseline, mine = summarise(events_of()).measured
    assert (baseline.arm, baseline.samples, baseline.training_s) == ("baseline", 7, 1.0)
    assert mine.step_s == pytest.approx(0.5 / 3)
    assert mine.images_per_s == pytest.approx(3 * 64 / 0.5)
    assert mine.faults_per_step == 100
    assert mine.system_share == pytest.approx(0.2)
    assert mine.peak_memory_bytes == 2**29
    assert mine.in_effect


def test_equal_losses():
    (comparison,) = summarise(events_of()).comparisons
    assert (comparison.losses.largest_difference, comparison.losses.agree) == (0, True)
    assert "equal to the last bit over 3 steps" in printed(events_of())


@pytest.mark.parametrize(("factor", "agree"), [(1 + 1e-5, True), (1.01, False), (0.99, False)])
def test_losses_that_differ(factor, agree):
    losses = [loss * factor for loss in (2.3, 2.299, 2.298)]
    events = events_of(mine={"losses": losses})
    (comparison,) = summarise(events).comparisons
    assert comparison.losses.agree is agree
    assert comparison.losses.largest_difference == pytest.approx(abs(factor - 1), rel=1e-3)
    assert ("LOSSES DIFFER" in printed(events)) is not agree


@pytest.mark.parametrize("step", [0, 1, 2])
def test_losses_that_are_no_numbers_do_not_agree(step):
    losses = [2.3, 2.299, 2.298]
    losses[step:] = [float("nan")] * (3 - step)
    events = events_of(mine={"losses": losses})
    assert summarise(events).comparisons[0].losses.agree is False
    assert "LOSSES DIFFER" in printed(events)
    assert "equal to the last bit" not in printed(events)


def test_one_sample_with_other_losses_is_enough():
    events = events_of()
    events[8]["losses"] = [3.0, 3.0, 3.0]
    assert events[8]["arm"] == "mine"
    assert summarise(events).comparisons[0].losses.agree is False


def test_a_profile_that_may_change_numerics_is_not_blamed():
    assert "LOSSES DIFFER" not in printed(events_of(numerics="may-differ", mine={"losses": [3.0, 3.0, 3.0]}))


def test_not_in_effect_has_neither_speedup_nor_losses():
    events = events_of(mine={"evidence": {"openmp": {"runtime": "intel"}}})
    (comparison,) = summarise(events).comparisons
    assert (comparison.verdict, comparison.speedup, comparison.losses) == ("NOT IN EFFECT", None, None)
    text = printed(events)
    assert "mine is NOT IN EFFECT: no speedup is worked out." in text
    assert "openmp.runtime: expected gnu, seen intel" in text
    assert "interval" not in text


def test_a_reference_that_is_not_in_effect_takes_the_speedup_too():
    events = events_of()
    for event in events:
        if event.get("arm") == "baseline":
            event["evidence"]["openmp"]["runtime"] = "intel"
    assert summarise(events).comparisons[0].verdict == "NOT IN EFFECT"


@pytest.mark.parametrize(("blocks", "verdict"), [(0, "too few samples"), (5, "too few samples"), (6, "faster")])
def test_verdict_by_the_number_of_blocks(blocks, verdict):
    assert summarise(events_of(blocks)).comparisons[0].verdict == verdict


def test_a_block_without_both_samples_does_not_count():
    events = [event for event in events_of(7) if (event.get("block"), event.get("arm")) != (6, "mine")]
    assert summarise(events).comparisons[0].speedup.blocks == 6


def test_a_failure_takes_the_speedup_until_the_run_has_gone_on():
    failure = {
        "event": "failure",
        "block": 6,
        "arm": "mine",
        "problem": "was killed",
        "stderr": "",
        "worker_seconds": 1,
    }
    events = [*events_of(ended=None), failure, {"event": "end", "reason": "a worker failed"}]
    (comparison,) = summarise(events).comparisons
    assert (comparison.verdict, comparison.speedup) == ("failed", None)
    events += [{"event": "resume"}, {"event": "end", "reason": "precise enough"}]
    assert summarise(events).comparisons[0].verdict == "faster"
    assert "FAILED   block 7, mine: the worker was killed" in printed(events)


def test_how_a_run_ended_before_it_was_resumed_does_not_count():
    """Interrupted, resumed, and then killed: it has not ended."""
    events = [*events_of(ended="interrupted"), {"event": "resume"}]
    assert summarise(events).ended is None
    assert "ended    not yet, or killed: continue with --resume" in printed(events)


def test_full_training_compares_one_run_each():
    (comparison,) = summarise(events_of(1, epochs=10, ended="complete")).comparisons
    assert (comparison.verdict, comparison.speedup) == ("one run each", None)
    assert comparison.single_ratio == pytest.approx(1 / 0.4975)


def test_notes():
    events = events_of(
        mine={"throttled_s": 0.5},
        removed_variables={"OMP_NUM_THREADS": "1"},
        kept_variables={"KMP_BLOCKTIME": "7"},
    )
    events[0]["engines"]["local"]["inspection"]["unverified_packages"] = (
        "torch.whl was installed without being verified"
    )
    for event in events[1:-1]:
        event["evidence"]["variables"]["sensitive"] = {"KMP_BLOCKTIME": "7"}
    text = printed(events)
    assert "note     mine was held back by its CPU quota for 3.5 s" in text
    assert "note     UNVERIFIED package: torch.whl" in text
    assert "note     not passed on from your environment: OMP_NUM_THREADS" in text
    assert "note     kept from your environment: KMP_BLOCKTIME" in text


def test_the_report_fits_80_columns_but_for_what_is_to_be_copied():
    for line in printed(events_of()).splitlines():
        assert len(line) <= 80, line


def test_json_is_what_a_script_can_read():
    events = events_of()
    document = json.loads(json.dumps(summarise(events).to_json()), parse_constant=pytest.fail)
    assert document["reference"] == "baseline"
    assert document["comparisons"][0]["speedup"]["blocks"] == 7
    assert document["measured"][1]["in_effect"] is True
    assert document["synthetic_data"] is False
