"""What a record says, from events as simulated workers leave them; how it is worded is in test_wording.py."""

from __future__ import annotations

import json

import numpy
import pytest
from envkit.checks.process_messages import CallWithMore, TooFewThreads
from envkit.rendering import text
from envkit.stats.verdict import Verdict
from envkit.worker.messages.cpus import SetByCall

from tests import records
from tests.records import conclude
from tests.report.planted import NOT_IN_EFFECT, OTHER_LOSSES, failed
from tests.reports import details, events_of, printed
from tests.simulation import STEADY, times


def test_medians_per_arm():
    baseline, mine = conclude(events_of()).measured
    assert (baseline.arm, baseline.samples, baseline.training_s) == ("baseline", 7, 1.0)
    assert mine.step_s == pytest.approx(0.5 / 3)
    assert mine.images_per_s == pytest.approx(3 * 64 / 0.5)
    assert mine.faults_per_step == 100
    assert mine.system_share == pytest.approx(0.2)
    assert mine.peak_memory_bytes == 2**29
    assert mine.in_effect


def test_usage_of_a_command_whose_steps_are_unknown_is_of_all_of_it():
    counted, _ = conclude(events_of()).measured
    events = [{**event, "images_per_step": None} if event["event"] == "sample" else event for event in events_of()]
    mine, _ = conclude(events).measured
    assert mine.images_per_s is None
    assert mine.faults_per_step == 3 * counted.faults_per_step
    assert mine.cpu_s == pytest.approx(3 * counted.cpu_s)


def test_equal_losses():
    (comparison,) = conclude(events_of()).comparisons
    assert (comparison.losses.largest_difference, comparison.losses.agree) == (0, True)


@pytest.mark.parametrize(("factor", "agree"), [(1 + 1e-5, True), (1.01, False), (0.99, False)])
def test_losses_that_differ(factor, agree):
    losses = [loss * factor for loss in (2.3, 2.299, 2.298)]
    (comparison,) = conclude(events_of(mine={"losses": losses})).comparisons
    assert comparison.losses.agree is agree
    assert comparison.losses.largest_difference == pytest.approx(abs(factor - 1), rel=1e-3)


@pytest.mark.parametrize("step", [0, 1, 2])
def test_losses_that_are_no_numbers_do_not_agree(step):
    losses = [2.3, 2.299, 2.298]
    losses[step:] = [float("nan")] * (3 - step)
    assert conclude(events_of(mine={"losses": losses})).comparisons[0].losses.agree is False


def test_one_sample_with_other_losses_is_enough():
    events = events_of()
    last = [event for event in events if event.get("arm") == "mine" and event["event"] == "sample"][-1]
    last |= OTHER_LOSSES
    assert conclude(events).comparisons[0].losses.agree is False


def test_a_profile_that_may_change_numerics_is_not_blamed():
    text = printed(events_of(numerics="may-differ", mine=OTHER_LOSSES))
    assert text.startswith("FASTER, BUT LOSSES DIFFER")  # they are compared and reported all the same
    assert "Use       if your results stay right with it: envkit exec mine.yaml" in text


@pytest.mark.parametrize("arm", ["baseline", "mine"])
def test_where_either_is_not_in_effect_there_is_neither_speedup_nor_losses(arm):
    (comparison,) = conclude(events_of(**{arm: NOT_IN_EFFECT})).comparisons
    assert (comparison.verdict, comparison.speedup, comparison.losses) == (Verdict.NOT_IN_EFFECT, None, None)


@pytest.mark.parametrize(
    ("blocks", "words"), [(0, "too few samples"), (1, "too few samples"), (5, "too few samples"), (6, "faster")]
)
def test_verdict_by_the_number_of_blocks(blocks, words):
    assert conclude(events_of(blocks)).comparisons[0].words == words


@pytest.mark.parametrize(("factor", "words"), [(0.97, "faster"), (1.03, "slower"), (1, "no difference larger than 2%")])
def test_verdict_by_the_margin_of_the_run(factor, words):
    events = events_of(mine={"seconds": times(factor)})
    assert conclude(events).comparisons[0].words == words
    events = events_of(mine={"seconds": times(factor)}, study={"margin": 0.001})
    assert conclude(events).comparisons[0].words == (words if factor != 1 else "no difference found")


def test_a_block_without_both_samples_does_not_count():
    events = [one for one in events_of(7) if (one["event"], one.get("block"), one.get("arm")) != ("sample", 6, "mine")]
    assert conclude(events).comparisons[0].speedup.blocks == 6


def test_looks_are_paid_for_by_wider_intervals():
    """At 40 of 50 blocks, the fourth look: of a run that stopped there, and of one whose time was used up."""
    seconds = numpy.random.default_rng(1).lognormal(0, 0.05, 40).tolist()
    early, late, plain = (
        conclude(events_of(40, mine={"seconds": seconds}, looks=looks, ended=ended)).comparisons[0].speedup
        for looks, ended in (
            ((10, 20, 30, 40, 50), "precise enough"), ((10, 20, 30, 40, 50), "budget used up"), ((40,), "complete")
        )
    )  # fmt: skip
    assert early.ratio == late.ratio == plain.ratio
    assert early.low < plain.low < plain.high < early.high
    assert late.low < plain.low < plain.high < late.high


def test_a_failure_takes_the_speedup_until_the_run_has_gone_on():
    events = failed(events_of())
    (comparison,) = conclude(events).comparisons
    assert (comparison.verdict, comparison.speedup) == (Verdict.FAILED, None)
    events += [{"event": "resume", "time": 0}, {"event": "end", "time": 0, "reason": "complete"}]
    assert conclude(events).comparisons[0].verdict == Verdict.FASTER
    assert "Failed    block 7, mine: the worker was killed" in printed(events)


def test_how_a_run_ended_before_it_was_resumed_does_not_count():
    """Interrupted, resumed, and then killed: it has not ended."""
    events = [*events_of(ended="interrupted"), {"event": "resume", "time": 0}]
    assert conclude(events).ended is None
    assert "ended     not yet, or killed: continue with --resume" in details(events)


def test_full_training_compares_one_run_each():
    events = events_of(1, study={"epochs": 10})
    (comparison,) = conclude(events).comparisons
    assert (comparison.verdict, comparison.speedup) == (Verdict.ONE_RUN_EACH, None)
    assert comparison.single_ratio == pytest.approx(1 / 0.4975)


OTHER = {"mine": "cnn-batch128"}


def test_losses_of_another_workload_are_not_compared():
    (comparison,) = conclude(events_of(mine=OTHER_LOSSES, workloads=OTHER)).comparisons
    assert comparison.losses is None
    (comparison,) = conclude(events_of(mine=OTHER_LOSSES, workloads={"mine": "cnn"})).comparisons
    assert not comparison.losses.agree


def test_the_bootstrap_compares_what_the_interval_compares():
    """Twice the batch in twice the time per step, or in half of the steps, is equally fast."""
    steps = events_of(mine={"seconds": [2.0 * second for second in STEADY], "images_per_step": 128}, workloads=OTHER)
    full = events_of(
        mine={"seconds": STEADY, "full_steps": 2}, baseline={"seconds": STEADY, "full_steps": 4}, workloads=OTHER,
        study={"epochs": 1, "blocks": 7},
    )  # fmt: skip
    for events in (steps, full):
        (comparison,) = conclude(events).comparisons
        assert comparison.speedup.ratio == pytest.approx(1)
        assert comparison.bootstrap.low == pytest.approx(1)
        assert comparison.bootstrap.high == pytest.approx(1)


def test_warm_up_and_reference_kernel_are_no_samples():
    result = conclude(events_of(7))
    assert [one.samples for one in result.measured] == [7, 7]
    assert result.seconds_per_block == pytest.approx(4.5)  # two workers of 2 s and a reference kernel of 0.5 s


def test_samples_in_the_order_of_the_run():
    result = conclude(events_of(3))
    assert [(one.block, one.arm) for one in result.samples] == [
        (block, arm.name) for block in range(3) for arm in result.study.order(block)
    ]
    # warming both takes 4 s and a reference kernel 0.5 s; the next sample begins when the first has ended
    assert [one.began_s for one in result.samples[:3]] == [4.5, 6.5, 9.0]
    baseline = next(one for one in result.samples if one.arm == "baseline")
    assert baseline.mean_step_s == pytest.approx(1 / 3)


def with_interference(events, *blocks, arm="baseline"):
    """The same, with another program that took the CPUs in some blocks."""
    for event in events:
        if (event["event"], event.get("arm")) == ("sample", arm) and event["block"] in blocks:
            event["usage"] |= {"worker_cpus": 4, "worker_cpus_busy_s": event["usage"]["user_s"] + 3 * event["seconds"]}
            event["step_s"] = [3 * step for step in event["step_s"]]
    return events


def test_the_result_is_given_with_and_without_disturbed_blocks():
    result = conclude(with_interference(events_of(12), 2, 5, 6, 9))
    assert list(result.interference) == [2, 5, 6, 9]
    (comparison,) = result.comparisons
    assert (comparison.speedup.blocks, comparison.without_interference.blocks) == (12, 8)
    assert comparison.without_interference.high == pytest.approx(2, rel=0.05)
    assert comparison.speedup.high > 3
    hit = {(one.block, one.arm) for one in result.samples if one.interference}
    assert hit == {(block, "baseline") for block in (2, 5, 6, 9)}


def test_nothing_is_said_without_disturbed_blocks_where_none_is_or_too_few_are_left():
    assert conclude(events_of(12)).comparisons[0].without_interference is None
    for hit in (3, 8):
        (comparison,) = conclude(with_interference(events_of(8), *range(hit))).comparisons
        assert (comparison.without_interference, comparison.speedup.blocks) == (None, 8)


def test_a_drift_of_the_machine_is_told_from_one_of_the_speedup():
    slowing = [1 + 0.02 * block for block in range(12)]
    half = [second / 2 for second in slowing]
    together = conclude(events_of(12, baseline={"seconds": slowing}, mine={"seconds": half}))
    assert together.reference_drift.change == pytest.approx(0.22, rel=0.1)
    assert together.reference_drift.p_value < 0.001
    assert together.comparisons[0].drift.p_value > 0.1
    alone = conclude(events_of(12, baseline={"seconds": slowing}, mine={"seconds": [0.5]}))
    assert alone.comparisons[0].drift.change == pytest.approx(0.22, rel=0.1)
    assert alone.comparisons[0].drift.p_value < 0.001


def test_steps_that_still_warm_up_are_left_out_of_all_numbers():
    events = events_of(7)
    lengths = next(event for event in events if event["event"] == "lengths")
    lengths |= {"skipped_steps": 1, "warm_up": {"baseline": 2, "mine": 0}}
    for event in events:
        if event["event"] == "sample":
            event["step_s"][0] *= 10
    result = conclude(events)
    assert (result.lengths.skipped_steps, result.lengths.warm_up) == (1, {"baseline": 2, "mine": 0})
    assert result.measured[0].step_s == pytest.approx(1 / 3)
    assert result.comparisons[0].speedup.ratio == pytest.approx(2)
    assert {len(one.step_s) for one in result.samples} == {2}


def test_json_is_what_a_script_can_read():
    document = json.loads(json.dumps(conclude(events_of(8, looks=(8, 12))).to_json()), parse_constant=pytest.fail)
    assert document["reference"] == "baseline"
    assert document["comparisons"][0]["speedup"]["blocks"] == 8
    assert document["measured"][1]["in_effect"] is True
    assert document["synthetic_data"] is False
    assert document["design"] == {"planned": 12, "looks": [8, 12], "comparisons": 1}


@pytest.mark.parametrize("blocks", [0, 1, 2, 7])
def test_a_run_that_was_ended_before_lengths_and_blocks_were_fixed_is_understood(blocks):
    result = conclude(records.run_events(blocks=blocks))
    assert result.comparisons[0].verdict == (Verdict.FASTER if blocks == 7 else Verdict.TOO_FEW_SAMPLES)
    fixed = result.lengths
    assert (result.design, fixed.warm_up, fixed.unsteady, fixed.skipped_steps) == (None, {}, [], 0)
    json.dumps(result.to_json(), allow_nan=False)


@pytest.mark.parametrize(("seconds", "steps", "said"), [(2.0, 10, ["page-faults"]), (0.1, 10, []), (2.0, 2, [])])
def test_why_the_baseline_takes_its_time_is_said_of_samples_that_are_long_enough(seconds, steps, said):
    events = records.run_events()
    for event in events:
        if event["event"] == "sample":
            event["seconds"], event["step_s"] = seconds, [seconds / steps] * steps
            event["usage"].update(user_s=0.7 * seconds, system_s=0.3 * seconds, minor_faults=50_000 * seconds)
    assert [finding.code for finding in conclude(events).findings] == said


def test_few_threads_are_told_of_the_process_that_trains_once_for_all_arms():
    """A launcher, as torchrun's agent, leaves evidence before it."""
    events = records.run_events()
    use = {
        "threads": 1, "pid": 7, "cpus": 4, "cores": 4, "machine_cpus": 4, "machine_cores": 4, "ranks": 1,
        "cpu_s": 30.0, "helper_cpu_s": 0.0, "on_gpu": False, "above": [6, 1], "threads_by": SetByCall().to_json(),
    }  # fmt: skip
    agent = {**use, "pid": 6, "threads": 4, "cpu_s": 2.0, "above": [1]}
    del agent["threads_by"]
    for event in events:
        if event["event"] == "sample":
            event["evidence"]["cpu_use"] = agent
            event["other_processes"] = [{"pid": 7, "argv": ["python"], "evidence": {"variables": {}, "cpu_use": use}}]
    (found,) = conclude(events).findings
    assert (found.code, found.seen, found.fix) == ("too-few-threads", TooFewThreads(1, 4, SetByCall()), CallWithMore(4))


def test_unmatched_lines_are_counted_over_all_samples():
    events = records.run_events()
    for event in events[1:4]:
        event["unmatched_lines"] = [2, "time nan"]  # as JSON has it
    (finding, other) = conclude(events).findings
    assert text(finding.seen) == "baseline: the metric does not match 4 lines like 'time nan'"
    assert text(other.seen).startswith("mine: the metric does not match 2 lines")


@pytest.mark.parametrize(
    ("key", "value", "finding"),
    [
        ("readings_cover", {"sum_s": 63.0, "elapsed_s": 2.0, "fits": ""}, ("readings-too-long", "warn",
         "baseline: the readings sum to 63 s, and the command printed them within 2 s")),
        ("readings_cover", {"sum_s": 0.06, "elapsed_s": 2.0, "fits": ""}, ("readings-too-short", "note",
         "baseline: the readings cover 3.0% of the time in which the command printed them")),
        ("readings_cover", {"sum_s": 0.06, "elapsed_s": 2.0, "fits": "s"}, ("readings-too-short", "note",
         "baseline: the readings cover 3.0% of the time in which the command printed them; read in s, they would cover "
         "it")),
        ("readings_rounding", 0.5, ("readings-rounded", "warn",
         "baseline: the last digits of the readings stand for 50% of their times")),
        ("rank_lines", ["[default0]:", 2], ("rank-lines", "note",
         "baseline: the metric reads the lines after '[default0]:' alone; 2 ranks had such lines")),
        ("rank_lines", ["", 2], ("repeated-lines", "warn",
         "baseline: the metric matches each step 2 times, and ms/step is that many times too small")),
    ],
)  # fmt: skip
def test_doubts_about_a_metric_s_readings_are_said(key, value, finding):
    events = records.run_events()
    events[1][key] = value
    (found,) = conclude(events).findings
    assert (found.code, found.severity, text(found.seen)) == finding
