"""The labelled lines and cautions of a report, by codes and fields; what they look like is in the golden files."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from envkit.bench.losses import Losses
from envkit.bench.study import UserCommand
from envkit.checks.effect_messages import Value
from envkit.checks.messages import CpusStolen
from envkit.common.messages import About
from envkit.report import cautions, certainty, lines, model, tables, terminal
from envkit.report.judgement import noise_floor
from envkit.report.messages import cautions as warned
from envkit.report.messages import certainty as sure
from envkit.report.messages import lines as said
from envkit.report.messages.advice import FIND_CAUSE, FIND_REST, RunFor
from envkit.report.parts import together
from envkit.stats.verdict import Verdict
from rich.console import Console

from tests.records import BEGUN, conclude
from tests.report.kinds import MAPPED, MKL, with_environment
from tests.report.planted import NOT_IN_EFFECT, NOT_VERIFIED, OTHER_LOSSES, disturbed
from tests.reports import details, events_of, printed
from tests.simulation import times

CALIBRATION = {"scale": 0.02, "blocks": 20, "folder": "results/x", "time": BEGUN}


def rows(events):
    return lines.rows(conclude(events))


def line(events, label):
    """The one message with this label."""
    (found,) = [row.text for row in rows(events) if row.label == label]
    return found


def cause(result):
    """The message on the cause of a difference."""
    return next(row.text for row in lines.rows(result) if row.label == "Why")


def warnings(events):
    return [row.text for row in cautions.rows(conclude(events))]


# --- settings ---


def test_settings_that_were_verified_are_counted():
    assert line(events_of(), "Settings") == said.AllVerified()
    events = with_environment(events_of(mine=MAPPED), **MKL)
    assert line(events, "Settings") == said.AllVerified(2)


def test_settings_that_could_not_be_verified_are_named_with_the_reason():
    found = line(events_of(mine=NOT_VERIFIED), "Settings")
    assert found == said.SomeVerified(0, 1, ("openmp.runtime",), Value("two answer for it"))
    long = " ".join(details(events_of(mine=NOT_VERIFIED)).split())
    assert "openmp.runtime gnu two answer for it not verified" in long


def test_of_many_those_that_were_not_in_effect_or_not_verified_are_named():
    others = {"wrong": NOT_IN_EFFECT, "partly": NOT_VERIFIED}
    assert line(events_of(12, others=others), "Settings") == said.SomeArmsVerified(
        1, 3, "profiles", ("wrong",), ("partly",)
    )
    assert line(events_of(12, others={"other": {}}), "Settings") == said.ArmsVerified(2, 2, "profiles")


def test_what_is_not_in_effect_is_a_table_and_the_line_counts_processes():
    events = events_of(mine=NOT_IN_EFFECT)
    assert line(events, "Settings") == said.CheckedIn(7, "mine")
    assert "openmp.runtime  gnu       intel" in printed(events)


# --- losses ---


def test_losses_that_agree():
    assert line(events_of(), "Losses") == said.LossesIdentical(3)
    found = line(events_of(mine={"losses": [2.3 * (1 + 1e-6), 2.299, 2.298]}), "Losses")
    assert (type(found), round(found.largest * 1e6, 3), found.steps) == (said.LossesRounded, 1.0, 3)


@pytest.mark.parametrize("numerics", ["same", "may-differ"])
def test_losses_that_differ_are_reported_whatever_the_profile_may_change(numerics):
    found = line(events_of(mine=OTHER_LOSSES, numerics=numerics), "Losses")
    assert (type(found), round(found.largest, 2)) == (said.LossesFarther, 0.30)


def test_losses_that_are_no_numbers_have_no_difference():
    assert line(events_of(mine={"losses": [1.0, math.nan, 1.0]}), "Losses") == said.LossesFarther(None)


def test_losses_of_many_are_told_together():
    others = {"near": {"losses": [2.3 * (1 + 1e-6), 2.299, 2.298]}, "apart": OTHER_LOSSES}
    found = [row.text for row in rows(events_of(12, others=others)) if isinstance(row.text, LOSSES)]
    assert [(type(one), one.arms) for one in found] == [
        (said.LossesIdentical, "mine"), (said.LossesRounded, "near"), (said.LossesFarther, "apart"),
    ]  # fmt: skip


LOSSES = (said.LossesIdentical, said.LossesRounded, said.LossesFarther)


def test_losses_of_another_training_are_not_compared():
    events = events_of(mine=OTHER_LOSSES, workloads={"mine": "cnn-nobias"})
    assert line(events, "Losses") == said.LossesOfOtherTraining("mine", ("cnn-nobias",), "times per image")
    assert "envkit exec" not in printed(events)


@pytest.mark.parametrize(
    ("losses", "metric", "expected"),
    [
        (None, None, said.LossesNotCompared(said.NOT_READ)),
        (None, "loss", said.LossesNotCompared(said.TOO_FEW_SAMPLES)),
        (Losses(8, 1.0, 1.0, 0.03, True, 0.05), "loss", said.LossesNear(0.03, 0.05, "baseline")),
        (Losses(8, 1.0, 1.2, 0.2, False, 0.0), "loss", said.LossesFarther(0.2)),
    ],
)
def test_losses_of_a_user_s_command(losses, metric, expected):
    result = conclude(events_of())
    own = UserCommand(("python", "train.py"), "/a", None, "s", 0, metric)
    comparison = replace(result.comparisons[0], losses=losses)
    result = replace(result, study=replace(result.study, user_command=own), comparisons=[comparison])
    assert lines.losses(result) == [expected]


# --- noise ---


def test_blocks_that_were_disturbed_are_counted_and_the_result_without_them_is_given():
    assert line(events_of(), "Noise") == said.Undisturbed(7)
    found = line(disturbed(events_of(10), 3, 5), "Noise")
    assert (found.disturbed, found.blocks, found.example) == (2, 10, About("mine", CpusStolen(2.0)))
    assert (round(found.rest.ratio, 2), found.rest.verdict) == (2.01, None)
    assert line(disturbed(events_of(7), 3, 5), "Noise").rest == said.TooFewWithout()


def test_of_many_the_verdicts_that_change_without_disturbed_blocks_are_named():
    others = {name: {"seconds": times(0.9)} for name in ("a", "b", "c")}
    assert line(disturbed(events_of(12, others=others), 3), "Noise").rest == said.SameWithout()
    few = line(disturbed(events_of(8, others=others), 3), "Noise")
    assert (few.rest, few.example) == (said.TooFewWithout(("mine",)), None)
    assert line(disturbed(events_of(8, others=others), 3, arm="baseline"), "Noise").rest == said.TooFewWithout()


def test_a_pace_that_changes_without_a_cause_is_told_and_is_in_the_json():
    events = events_of()
    next(event for event in events if event["event"] == "reference-kernel" and event["block"] == 3)["seconds"] = 0.16
    assert line(events, "Noise") == said.PaceVaried(pytest.approx(1.6))
    assert conclude(events).to_json()["reference_kernel_range_s"] == (0.1, 0.16)
    assert not any(isinstance(row.text, said.PaceVaried) for row in rows(disturbed(events, 3)))


# --- why ---


@pytest.mark.parametrize(
    ("factor", "usage", "kind", "moved"),
    [
        (0.6, {"system_s": 0.1}, said.SystemTimeChanged, "fell"),
        (1.5, {"system_s": 2.0}, said.SystemTimeChanged, "rose"),
        (0.6, {"minor_faults": 3}, said.FaultsChanged, "fell"),
        (1.5, {"minor_faults": 3000}, said.FaultsChanged, "rose"),
    ],
)
def test_the_counter_that_moved_with_the_speed_is_named(factor, usage, kind, moved):
    found = line(events_of(12, mine={"seconds": times(factor), "usage": usage}), "Why")
    assert (type(found), found.moved) == (kind, moved)


@pytest.mark.parametrize(
    ("factor", "usage", "share", "rest"),
    [
        (0.6, {"user_s": 2.8, "system_s": 0.2}, 0.6 / 1.0, True),  # of 3.2 and 0.8 s
        (0.6, {"user_s": 3.1, "system_s": 0.1}, 0.7 / 0.8, False),  # nearly all
        (1.5, {"user_s": 3.2, "system_s": 2.0}, 1.0, False),
        (0.6, {"user_s": 3.9, "system_s": 0.1}, None, True),  # the CPU time is the same
    ],
)
def test_it_says_how_much_of_the_cpu_time_is_covered_and_where_to_find_the_rest(factor, usage, share, rest):
    both = {"baseline": {"usage": {"user_s": 3.2, "system_s": 0.8}}, "mine": {"seconds": times(factor), "usage": usage}}
    whole, *others = [row for row in rows(events_of(12, **both)) if row.label in ("Why", "")]
    moved = "saved" if factor < 1 else "added"
    assert whole.text.covered == (None if share is None else said.Covered(pytest.approx(share), moved))
    assert [row.text for row in others] == [RunFor(FIND_REST, "envkit breakdown mine.yaml")] * rest
    assert all(row.whole for row in others)  # it can be pasted


def test_breakdown_is_named_with_the_workload_and_its_modes_and_for_no_users_command():
    result = conclude(events_of(12))
    modes = replace(result.study.options, precision="bf16-autocast")
    other = replace(result, study=replace(result.study, workload="loader", options=modes))
    (command,) = [row.text.command for row in lines.rows(other) if getattr(row.text, "purpose", None) == FIND_CAUSE]
    assert command == "envkit breakdown mine.yaml --workload loader --precision bf16-autocast"
    own = UserCommand(("python", "train.py"), "/a", None, "s", 0)
    of_command = replace(result, study=replace(result.study, user_command=own))
    assert not any(getattr(row.text, "purpose", None) == FIND_CAUSE for row in lines.rows(of_command))


def test_page_faults_of_a_users_command_are_those_of_its_run():
    """Only a workload of the kit counts them in its steps."""
    result = conclude(events_of(12, mine={"seconds": times(0.6), "usage": {"minor_faults": 3}}))
    own = UserCommand(("python", "train.py"), "/a", None, "s", 0)
    of_command = replace(result, study=replace(result.study, user_command=own))
    assert [cause(one).unit for one in (result, of_command)] == ["step", "run"]
    assert [tables.header(tables.columns(one))[4] for one in (result, of_command)] == ["faults/step", "faults/run"]


def test_no_cause_is_given_where_no_counter_moved_with_the_speed():
    assert line(events_of(12), "Why") == said.CauseUnknown()
    assert line(events_of(12, mine={"usage": {"system_s": 5.0}}), "Why") == said.CauseUnknown()
    assert "Why" not in [row.label for row in rows(events_of(12, mine={"seconds": times(1)}))]


def test_an_allocator_s_settings_explain_page_faults_that_are_gone():
    result = conclude(events_of(12, mine={"usage": {"minor_faults": 0}}))
    environment = replace(result.environments["mine"], variables={"MALLOC_CONF": "dirty_decay_ms:-1"})
    known = replace(result, environments={**result.environments, "mine": environment})
    assert cause(known).cause == said.MEMORY_KEPT
    huge = replace(environment, variables={"THP_MEM_ALLOC_ENABLE": "1"})
    assert cause(replace(result, environments={**result.environments, "mine": huge})).cause == said.HUGE_PAGES


# --- cautions ---


def test_a_profile_that_overrides_mkl_s_check_says_so_beside_the_verdict():
    events = with_environment(events_of(mine=MAPPED), **MKL)
    assert warnings(events) == [warned.MayChangeResults(), warned.VendorCheckOverridden()]
    assert printed(events).splitlines()[1].startswith("Caution   may change results")


def test_memory_that_a_profile_costs():
    events = events_of()
    assert warnings(events) == []
    for event in events:
        if (event["event"], event.get("arm")) == ("sample", "mine"):
            event["peak_memory_bytes"] *= 1.5
    assert warnings(events) == [warned.CostsMemory(1.5)]


def test_cautions_of_many_stand_in_their_rows():
    events = with_environment(events_of(12, mine=MAPPED, others={"learns": OTHER_LOSSES, "other": {}}), **MKL)
    marks, meanings = cautions.legend(conclude(events))
    assert marks == {"mine": "a, b", "learns": "losses differ"}
    assert meanings == [warned.MayChangeResults(), warned.VendorCheckOverridden()]
    assert warnings(events) == []


def test_a_profile_that_its_quota_held_back():
    assert warnings(events_of(mine={"throttled_s": 0.5})) == [warned.HeldBackByQuota("mine", 3.5)]
    assert warnings(events_of(mine={"throttled_s": 0.01})) == []


def test_an_arm_that_never_becomes_steady():
    events = events_of()
    next(event for event in events if event["event"] == "lengths").update(
        warm_up={"baseline": 2}, unsteady=["baseline"]
    )
    assert warnings(events) == [warned.NotSteady("baseline", "--warmup-steps")]
    assert "steady from step 3" not in details(events)
    result = conclude(events)
    own = UserCommand(("python", "train.py"), "/a", None, "s", 0)
    (row,) = cautions.rows(replace(result, study=replace(result.study, user_command=own)))
    assert row.text == warned.NotSteady("baseline", "--warmup-lines")


def test_a_speedup_that_drifts_is_an_average():
    slowing = [1 + 0.02 * block for block in range(12)]
    both = events_of(12, baseline={"seconds": slowing}, mine={"seconds": [one / 2 for one in slowing]})
    assert warnings(both) == []
    assert "drift" in details(both)
    (found,) = warnings(events_of(12, baseline={"seconds": slowing[::-1]}, mine={"seconds": [0.5]}))
    assert (type(found), round(found.ratio, 2)) == (warned.SpeedupDrifted, 0.82)


NEARLY = {"seconds": [0.99, 0.85, 0.985, 0.99, 0.8, 0.98, 0.99, 0.9, 0.99, 0.985, 0.88, 0.99]}


def test_the_low_end_is_what_to_rely_on_where_a_gain_is_close_to_the_noise():
    alone = events_of(12, baseline={"seconds": [1.0]}, mine=NEARLY)
    speedup = conclude(alone).comparisons[0].speedup
    assert speedup.verdict == Verdict.FASTER
    assert warnings(alone) == [warned.MayBeOverstated(speedup.low)]
    beside = events_of(12, baseline={"seconds": [1.0]}, mine=NEARLY, others={"other": {"seconds": [1.0]}})
    (found,) = warnings(beside)
    assert (type(found), found.arm) == (warned.MayBeOverstated, "mine")
    clear = {"clear": {"seconds": [0.5]}}
    assert warnings(events_of(12, baseline={"seconds": [1.0]}, mine=NEARLY, others=clear)) == []
    assert warnings(events_of(12)) == []


def test_synthetic_data_is_named_beside_the_verdict():
    assert warnings(events_of(study={"data": "synthetic"}))[0] == warned.SyntheticData()


# --- details ---


def test_the_noise_floor_of_a_calibrated_machine():
    """Student's t for 20 blocks is 2.093; times sqrt(pi / 3), times the error of a mean of 16 blocks: e^0.01071."""
    text = " ".join(details(events_of(16, calibration=CALIBRATION)).split())
    assert "floor baseline against itself stays within 0.99x to 1.01x in 95% of such runs" in text
    assert "(measured 2026-10-26)" in text
    assert noise_floor(conclude(events_of(16, calibration=CALIBRATION)), 16) == pytest.approx(0.01077, rel=0.001)
    assert noise_floor(conclude(events_of()), 7) is None


@pytest.mark.parametrize(("blocks", "others", "more"), [(6, 0, 7), (7, 0, None), (8, 5, 10), (12, 5, None)])
def test_an_interval_of_so_few_blocks_that_it_spans_them_all_asks_for_more(blocks, others, more):
    events = events_of(blocks, others={f"other-{number}": {} for number in range(others)})
    told = [row.text for row in certainty.rows(conclude(events)) if isinstance(row.text, sure.SpansBlocks)]
    assert told == ([] if more is None else [sure.SpansBlocks(more)])


def test_a_calibration_has_its_own_noise_floor():
    events = events_of(16, mine={"seconds": times(1)}, profile="baseline")
    assert "later runs use it" in " ".join(details(events).split())


def test_warm_up():
    events = events_of()
    next(event for event in events if event["event"] == "lengths")["warm_up"] = {"baseline": 3, "mine": 0}
    found = {row.label: row.text for row in certainty.rows(conclude(events))}
    assert found["warm-up"] == sure.SteadyFrom(4, left_out=1)


def test_what_shares_a_reason_is_told_together():
    assert together({"a": "no GPU", "b": "no library", "c": "no GPU"}) == {"a, c": "no GPU", "b": "no library"}


@pytest.mark.parametrize("blocks", [0, 3, 12])
@pytest.mark.parametrize("ended", ["interrupted", None])
def test_nothing_is_claimed_before_the_run_has_ended(blocks, ended):
    """However often somebody looks: the error rate is for the interim analyses that were planned."""
    text = printed(events_of(blocks, ended=ended))
    assert text.startswith("UNFINISHED")
    assert "CI" not in text
    assert "envkit bench --resume some/folder" in text


def test_a_folder_with_blanks_can_be_pasted():
    out = io.StringIO()
    terminal.show(model.report_of(conclude(events_of()), "my runs/a"), Console(file=out, width=80))
    assert "envkit report 'my runs/a' --details" in out.getvalue()


# --- disturbed blocks with another speedup, and total times ---


def half_disturbed(quiet, in_disturbed, of=40, hit=24):
    """The events of a run whose first blocks were disturbed and took other times."""
    spread = [1 + 0.001 * (number % 7) for number in range(of)]
    seconds = [factor * (in_disturbed if number < hit else quiet) for number, factor in enumerate(spread)]
    return disturbed(events_of(of, mine={"seconds": seconds}, baseline={"seconds": [1.0] * of}), *range(hit))


def test_blocks_under_load_with_another_speedup_are_told_and_the_verdict_holds_under_that_load():
    events = half_disturbed(quiet=1.0, in_disturbed=0.5)
    noise = [row.text for row in rows(events) if isinstance(row.text, said.OtherInDisturbed)]
    assert [(round(one.ratio, 1), one.blocks, one.arm) for one in noise] == [(2.0, 24, None)]
    assert printed(events).startswith("FASTER UNDER LOAD  mine: ")


@pytest.mark.parametrize(("number", "more"), [(lines.MOST_NAMED, None), (lines.MOST_NAMED + 3, 3)])
def test_of_many_profiles_with_another_speedup_under_load_a_few_are_named(number, more):
    names = ["mine", *(f"other-{index}" for index in range(1, number))]
    spread = [1 + 0.001 * (block % 7) for block in range(60)]
    seconds = {"seconds": [factor * (0.5 if block < 36 else 1.0) for block, factor in enumerate(spread)]}
    others = dict.fromkeys(names[1:], seconds)
    events = events_of(60, mine=seconds, others=others, baseline={"seconds": [1.0] * 60})
    for name in names:
        disturbed(events, *range(36), arm=name)
    shown = [row.text for row in rows(events)]
    assert [line.arm for line in shown if isinstance(line, said.OtherInDisturbed)] == names[: lines.MOST_NAMED]
    assert [line.more for line in shown if isinstance(line, said.MoreInDisturbed)] == ([more] if more else [])


def test_the_same_verdict_of_the_quiet_blocks_is_not_enough_where_their_speedup_differs():
    events = half_disturbed(quiet=0.9, in_disturbed=0.25)
    assert printed(events).startswith("FASTER UNDER LOAD  mine: ")


def test_quiet_blocks_that_say_the_same_need_no_load():
    events = half_disturbed(quiet=0.5, in_disturbed=0.5)
    assert not [row for row in rows(events) if isinstance(row.text, said.OtherInDisturbed)]
    assert printed(events).startswith("FASTER  mine: ")


def test_total_times_weigh_slow_blocks():
    long = " ".join(details(events_of(20)).split())
    assert "total all samples together: 2.0" in long
    seconds = [0.5] * 19 + [40.0]
    long = " ".join(details(events_of(20, mine={"seconds": seconds}, baseline={"seconds": [1.0] * 20})).split())
    assert "outside of the interval: slow blocks had another speedup" in long
