"""What a report says of each outcome: what was found, how sure it is, what to do next."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from envkit.analysis.summary import summarise
from envkit.bench.user_command import UserCommand
from envkit.report import terminal, wording
from envkit.report.wording import noise_floor, together
from rich.console import Console

from tests import records
from tests.report.planted import NOT_IN_EFFECT, NOT_VERIFIED, OTHER_LOSSES, disturbed, failed
from tests.reports import BEGUN, details, events_of, printed, said
from tests.simulation import STEADY, times

CALIBRATION = {"sd": 0.02, "blocks": 20, "folder": "results/x", "time": BEGUN}


# --- what was found, and what to do next ---


def test_where_another_s_worker_failed_the_way_on_is_told():
    events = events_of(7, others={"other": {}})
    text = said(failed(events, "other"))
    on = "the run ended as a worker of other failed: go on with --resume, or measure without that"
    assert f"mine not worked out: {on}" in text
    assert "other not worked out: failed" in text
    assert "measure without" not in said(failed(events, "baseline"))  # which can't be left out


def test_of_many_those_with_too_few_undisturbed_blocks_are_named():
    others = {name: {"seconds": times(0.9)} for name in ("a", "b", "c")}
    assert "without them: too few blocks of mine are left" in said(disturbed(events_of(8, others=others), 3))
    everyone = said(disturbed(events_of(8, others=others), 3, arm="baseline"))
    assert "without them: too few blocks are left for intervals" in everyone


def test_losses_that_are_no_numbers_are_wrong_whatever_the_profile_may_change():
    text = said(events_of(mine={"losses": [1.0, math.nan, 1.0]}, numerics="may-differ"))
    assert "LOSSES DIFFER" in text
    assert "find out why the losses of mine differ, before you use it" in text


def test_a_folder_with_blanks_can_be_pasted():
    out = io.StringIO()
    terminal.show(summarise(events_of()), "my runs/a", Console(file=out, width=80))
    assert "envkit report 'my runs/a' --details" in out.getvalue()


@pytest.mark.parametrize(
    ("seconds", "verdict", "meaning", "advice"),
    [
        (times(0.8), ": FASTER", "mine takes 20.0% less time than baseline here.",
         "use mine: envkit exec mine.yaml -- your command"),
        (times(1.25), ": SLOWER", "mine takes 25.0% more time than baseline here.",
         "leave mine alone here: baseline is faster"),
        (times(1), ": NO DIFFERENCE LARGER THAN 2%", "Its time is within -0.8% to +0.8% of baseline's.",
         "choose baseline or mine for other reasons than speed"),
        ([1.2, 1.1, 0.8, 1.3, 0.9, 0.95, 1.05], ": NO DIFFERENCE FOUND", "of baseline's, and may be equal.",
         "% is excluded; to find"),
    ],
)  # fmt: skip
def test_verdict_meaning_and_advice(seconds, verdict, meaning, advice):
    lines = printed(events_of(mine={"seconds": seconds})).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("mine     "))
    assert "(95% interval " in lines[at]
    assert lines[at].endswith(verdict)
    assert lines[at + 1].strip().endswith(meaning)
    (following,) = [line for line in lines if line.startswith("next ")]
    assert advice in following


@pytest.mark.parametrize(("plan", "option"), [({}, "--budget"), ({"blocks": 5}, "--blocks")])
def test_too_few_blocks(plan, option):
    text = said(events_of(5, plan=plan))
    assert f"mine not worked out: an interval needs 6 complete blocks (raise {option})" in text
    assert "sure " not in text


@pytest.mark.parametrize("blocks", [0, 3, 12])
@pytest.mark.parametrize("ended", ["interrupted", None])
def test_nothing_is_claimed_before_the_run_has_ended(blocks, ended):
    """However often somebody looks: the error rate is for the looks that were planned."""
    text = said(events_of(blocks, mine={"seconds": times(0.5)}, ended=ended))
    assert "mine not worked out before the run has ended: go on with --resume" in text
    assert "FASTER" not in text
    assert "interval" not in text
    assert ("noise " in text) == (blocks > 0)


@pytest.mark.parametrize("arm", ["baseline", "mine"])
def test_not_in_effect(arm):
    text = printed(events_of(**{arm: NOT_IN_EFFECT}))
    assert "mine     not worked out: NOT IN EFFECT" in text
    assert f"effect   {arm} is NOT IN EFFECT: no speedup is worked out\n" in text
    assert "openmp.runtime: expected gnu, seen intel" in text
    assert "next     find out why: envkit doctor mine" in text
    assert "interval" not in text


def test_in_effect_is_said_of_each_profile():
    text = printed(events_of())
    for arm in ("baseline", "mine"):
        assert f"effect   {arm}: what it expects was observed in every sample (1 of 1)" in text


def test_what_could_not_be_verified_is_said_beside_the_speedup():
    text = printed(events_of(mine=NOT_VERIFIED))
    assert "effect   mine: openmp.runtime is NOT VERIFIED: two answer for it" in text
    assert "mine: what it expects was observed" not in text
    assert "effect   baseline: what it expects was observed in every sample (1 of 1)" in text
    assert "FASTER" in text
    long = " ".join(details(events_of(mine=NOT_VERIFIED)).split())
    assert "mine: not verified" in long
    assert "openmp.runtime gnu two answer for it not verified" in long


def test_a_failed_run():
    killed = failed(events_of(), problem="was killed by signal SIGKILL", stderr="one\ntwo\nthree\nfour\n")
    text = printed(killed)
    assert "mine     not worked out: failed" in text
    assert "FAILED   block 7, mine: the worker was killed by signal SIGKILL" in text
    assert "         | two\n         | three\n         | four\n" in text
    assert "| one" not in text
    assert "interval" not in text


def test_one_run_each():
    text = printed(events_of(1, plan={"epochs": 10}))
    assert "mine     2.010, from one run each: no interval, no verdict" in text
    assert "the book's intel-omp" in text
    assert "noise " not in text
    assert "floor " not in text


def test_another_workload_is_said_and_is_no_profile_to_use():
    text = printed(events_of(mine=OTHER_LOSSES, workloads={"mine": "cnn-nobias"}))
    assert "It trains something else (cnn-nobias): times per image are compared," in text
    assert "LOSSES" not in text
    assert "envkit exec" not in text
    assert "envkit exec" in printed(events_of())
    assert "workload cnn, cnn-nobias" in " ".join(text.split())
    full = printed(events_of(1, plan={"epochs": 10}, workloads={"mine": "cnn-nobias"}))
    assert "whole trainings are compared" in full


def test_of_many_arms_those_of_another_workload_are_named():
    others = {name: {} for name in ("a", "b", "c")}
    text = printed(events_of(8, others=others, workloads={"a": "cnn-nobias", "b": "cnn-batch128"}))
    assert "not compared where something else is trained (a, b): times per image are" in " ".join(text.split())


def test_losses():
    assert "Losses are equal to the last bit over 3 steps." in printed(events_of())
    nearly = [2.3 * (1 + 1e-6), 2.299, 2.298]
    text = printed(events_of(mine={"losses": nearly}))
    assert "Losses differ by 1.0e-06 of their value at most, over 3 steps." in text


def test_losses_that_differ_are_no_reason_to_use_a_faster_profile():
    text = said(events_of(mine=OTHER_LOSSES))
    assert "LOSSES DIFFER by more than rounding (up to 3.0e-01): it changes what is learnt" in text
    assert "next find out why the losses of mine differ, before you use it" in text
    assert "use mine:" not in text


def test_several_profiles_have_a_verdict_and_an_advice_each():
    events = events_of(8, mine={"seconds": times(0.8)}, others={"slow": {"seconds": times(1.5)}, "same": {}})
    lines = printed(events).splitlines()
    verdicts = {line.split()[0]: line.split(": ")[1] for line in lines[1:] if "(95% interval " in line}
    assert verdicts == {"mine": "FASTER", "slow": "SLOWER", "same": "NO DIFFERENCE LARGER THAN 2%"}
    assert len([line for line in lines if line.startswith("next ")]) == 3
    assert "in at most 5% of such runs for all of them together; so do the intervals hold." in said(events)


# --- how sure it is ---


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        ("precise enough", "stopped early, as it was precise enough"),
        ("budget used up", "budget used up"),
    ],
)
def test_why_the_run_ended_and_how_often_it_errs(ended, why):
    text = said(events_of(12, looks=(8, 12, 16), ended=ended))
    assert f"sure 12 blocks ({why}). Where there is no difference, one is claimed in at most 5% of such runs." in text


def test_the_noise_floor_of_a_calibrated_machine():
    """Student's t for 20 blocks is 2.093; times the error of the mean of 16 blocks that vary by 2%: e^0.01047."""
    text = said(events_of(16, calibration=CALIBRATION))
    floor = "floor baseline against itself differs by less than 1.1% in 95% of runs of so many blocks here"
    assert f"{floor} (calibrated 2026-10-26)" in text
    assert noise_floor(summarise(events_of(16, calibration=CALIBRATION)), 16) == pytest.approx(0.01052, rel=0.001)


def test_a_machine_that_is_not_calibrated():
    assert "is not known; measure it with: envkit calibrate" in said(events_of())


@pytest.mark.parametrize(
    ("factor", "advice"),
    [(1, "next measure a profile: envkit bench PROFILE"), (0.9, "next calibrate again: there is no such difference")],
)
def test_a_calibration_says_its_own_noise_floor(factor, advice):
    events = events_of(16, mine={"seconds": times(factor)}, profile="baseline")
    text = said(events)
    assert "floor baseline against itself differs by less than " in text
    assert "later runs show it next to their speedups" in text
    assert advice in text
    assert "envkit show" not in text


def test_no_block_was_disturbed():
    assert "noise none of 7 blocks was disturbed from outside, as far as can be seen" in said(events_of())


def test_a_pace_that_changes_without_a_reason_is_told_and_is_in_the_json():
    events = events_of()
    assert "own pace changed" not in said(events)
    assert summarise(events).to_json()["reference_kernel_range_s"] is None
    next(event for event in events if event["event"] == "reference-kernel" and event["block"] == 3)["seconds"] = 0.16
    took = "the same fixed work took 100 ms in one block and 160 ms in another."
    expected = f"the machine's own pace changed, though no counter shows why: {took}"
    assert expected in said(events)
    assert summarise(events).to_json()["reference_kernel_range_s"] == (0.1, 0.16)
    assert expected not in said(disturbed(events, 3))


def test_disturbed_blocks_are_counted_and_the_result_without_them_is_given():
    text = said(disturbed(events_of(10), 3, 5))
    assert "noise 2 of 10 blocks disturbed from outside, for example mine: 2.00 CPUs stolen" in text
    assert "without them: 2.010 (1.995 to 2.015), faster" in text
    assert "without them: too few blocks are left for an interval" in said(disturbed(events_of(7), 3, 5))


@pytest.mark.parametrize("factor", [0.5, 1, 1.25])
def test_where_nearly_all_blocks_were_disturbed_nothing_is_advised_from_the_result(factor):
    mine = {"seconds": times(factor)}
    text = said(disturbed(events_of(10, mine=mine), *range(8)))
    why = "8 of 10 blocks were disturbed, the hypervisor withheld CPU time machine"
    assert text.count(f"next measure again on a quieter machine: {why}") == 1
    assert text.count(" next ") == 1
    assert "measure again" not in said(disturbed(events_of(10, mine=mine), *range(7)))
    # with as many left as it takes for a result without them
    assert "measure again" not in said(disturbed(events_of(40, mine=mine), *range(32)))


def test_the_most_frequent_disturbance_is_named_once_for_several_profiles():
    events = disturbed(events_of(7, others={"other": {}}), 2)
    for event in events:
        if event["event"] == "sample":
            event["usage"]["worker_cpus_busy_s"] = 5 * event["seconds"]
    text = said(events)
    quieter = "next measure again on a quieter machine: 7 of 7 blocks were disturbed, other programs used its CPUs"
    assert text.count(quieter) == 1
    assert text.count(" next ") == 1


def test_with_several_profiles_it_is_said_whose_result_without_disturbed_blocks_it_is():
    text = said(disturbed(events_of(12, others={"other": {}}), 3))
    assert "mine without them: 2.00" in text
    assert "other without them" not in text  # none of its samples was disturbed, nor of the baseline's
    text = said(disturbed(events_of(12, others={"other": {}}), 3, arm="baseline"))
    assert "mine without them: 2.00" in text
    assert "other without them: 1.00" in text


def test_a_drift():
    slowing = [1 + 0.02 * block for block in range(12)]
    text = said(events_of(12, baseline={"seconds": slowing}, mine={"seconds": [one / 2 for one in slowing]}))
    assert "drift baseline took 21.9% more time at the end than at the start; blocks cancel that" in text
    assert "the speedup of mine itself" not in text
    text = said(events_of(12, baseline={"seconds": slowing[::-1]}, mine={"seconds": [0.5]}))
    assert "drift baseline took 18.0% less time at the end than at the start; blocks cancel that" in text
    assert "drift the speedup of mine itself changed by -18.0% in the course of the run: it is an average" in text
    assert "drift" not in said(events_of(12))


def test_warm_up():
    events = events_of()
    next(event for event in events if event["event"] == "lengths")["warm_up"] = {"baseline": 3, "mine": 0}
    assert "warm-up steady after 3 steps; the first 1 of each sample are left out" in said(events)
    assert "warm-up not looked for: a sample has fewer than 100 steps" in said(events_of())


def test_an_arm_that_never_becomes_steady():
    events = events_of()
    next(event for event in events if event["event"] == "lengths").update(
        warm_up={"baseline": 2}, unsteady=["baseline"]
    )
    text = said(events)
    assert "baseline was not steady within half of a sample: give more --warmup-steps" in text
    assert "steady after" not in text
    summary = summarise(events)
    own = UserCommand(("python", "train.py"), "/a", None, "s", 0)
    texts = [row.text for row in wording.certainty(replace(summary, plan=replace(summary.plan, user_command=own)))]
    assert "baseline was not steady within half of a sample: give more --warmup-lines" in texts


def test_a_profile_that_its_quota_held_back():
    noted = said(events_of(mine={"throttled_s": 0.5}))
    assert "note mine was held back by its CPU quota for 3.5 s, summed over CPUs" in noted
    assert "quota" not in said(events_of(mine={"throttled_s": 0.01}))


# --- its size ---


def test_the_report_of_an_ordinary_run_fits_on_one_screen():
    lines = printed(events_of(12, looks=(8, 12, 16), ended="precise enough", calibration=CALIBRATION)).splitlines()
    assert len(lines) <= 23


@pytest.mark.parametrize(
    "events",
    [
        events_of(12, looks=(8, 12, 16), ended="precise enough", calibration=CALIBRATION),
        events_of(5),
        events_of(mine={"evidence": {"openmp": {"runtime": "intel" * 30}}}),
        events_of(mine=OTHER_LOSSES),
        events_of(8, others={"a-profile-with-a-long-name": {}, "another": {"seconds": [1.0, 2.0, 0.5]}}),
        events_of(16, profile="baseline"),
        events_of(1, plan={"epochs": 10}),
        disturbed(events_of(10, baseline={"seconds": sorted(STEADY)}), 3),
        records.run_events(),
    ],
)
def test_no_report_is_wider_than_a_terminal(events):
    lines = printed(events).splitlines()
    assert [line for line in lines if len(line.rstrip()) > 80 and "some/folder" not in line] == []


def test_what_shares_a_reason_is_told_together():
    assert together({"a": "no GPU", "b": "no library", "c": "no GPU"}) == {"a, c": "no GPU", "b": "no library"}
