"""``envkit baseline check``: what is a regression, and what can not be compared."""

from __future__ import annotations

import json
import re
from dataclasses import asdict

import pytest
from envkit.bench import record
from envkit.worker.modes import Options

from tests import records
from tests.cli.commands.conftest import words
from tests.plans import TRAINING
from tests.sessions import BLOCKS, REFERENCE_KERNEL_S, change_inspection, rewrite, session, signed, verdicts

OTHER = "a" * 64
CPU = "the CPU was Simulated CPU (model 1) and is now"


def test_a_slower_profile_is_a_regression(save, check):
    save()
    result = check(slower={"mine": 1.2}).ended(1, stderr="")
    baseline, mine = verdicts(result)
    assert (baseline, mine) == ("NO REGRESSION  baseline", "REGRESSION  mine")
    assert re.search(
        r"^REGRESSION  mine: 0\.8[34]x its normalised speed then \(97\.5% CI 0\.8", result.stdout, re.MULTILINE
    )
    assert re.search(r"^Speedup   mine over baseline: 0\.8[34]x its speedup then", result.stdout, re.MULTILINE)
    assert "measure once more before you act" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_same_speed_is_none(save, check):
    save()
    result = check().ended(0)
    assert verdicts(result) == ["NO REGRESSION  baseline", "NO REGRESSION  mine"]
    assert "Differs   the two environments are recorded as identical" in result.stdout


def test_a_loss_of_3_percent_is_not_beyond_5_but_beyond_1(save, check):
    save(noise=0.002)
    planted = {"slower": {"mine": 1.03}, "noise": 0.002}
    assert check(**planted).returncode == 0
    result = check("--threshold", "1%", **planted).ended(1)
    assert verdicts(result)[1] == "REGRESSION  mine"


@pytest.mark.parametrize(
    ("slower", "noise", "verdict"),
    [
        (1.05, 0.05, "NOT CERTAIN  mine"),
        (0.8, 0.01, "FASTER  mine"),
    ],
)
def test_what_is_between_is_not_certain_and_a_faster_one_is_worth_a_new_baseline(save, check, slower, noise, verdict):
    save(noise=noise)
    result = check(slower={"mine": slower}, noise=noise).ended(0)
    assert verdicts(result)[1] == verdict
    advised = {"NOT CERTAIN  mine": "measure more blocks", "FASTER  mine": "save a new baseline"}
    assert advised[verdict] in result.stdout


def test_a_machine_that_is_slower_today_cancels(save, check):
    """All times, the reference kernel's too, are 20% longer: no regression, and shown as the machine's change."""
    save()
    result = check(machine=1.2).ended(0)
    assert verdicts(result) == ["NO REGRESSION  baseline", "NO REGRESSION  mine"]
    assert re.search(r"Machine   0\.8[34]x its speed then", result.stdout)
    assert re.search(r"^mine +\S+ +\S+ +0\.8[2345]x", result.stdout, re.MULTILINE)


def test_a_slowdown_is_seen_through_a_machine_that_is_faster_today(save, check):
    save()
    result = check(machine=1 / 1.2, slower={"baseline": 1.5, "mine": 1.5}).ended(1)
    assert verdicts(result) == ["REGRESSION  baseline", "REGRESSION  mine"]
    assert re.search(r"^mine +\S+ +\S+ +0\.(79|80|81)x +0\.6\dx", result.stdout, re.MULTILINE)


def test_a_faster_reference_kernel_alone_is_no_regression(save, check):
    """Each step takes as long as before: nothing was seen to get slower."""
    save()
    result = check(reference_kernel_s=REFERENCE_KERNEL_S / 1.3)
    assert (result.returncode, len(verdicts(result))) == (0, 2)
    assert verdicts(result) == ["NOT CERTAIN  baseline", "NOT CERTAIN  mine"]
    assert words(result.stdout).count("only the reference kernel changed: as measured, ") == 2
    document = json.loads(check("--json", reference_kernel_s=REFERENCE_KERNEL_S / 1.3).stdout)
    assert document["regression"] is False
    assert [one["reference_kernel_only"] for one in document["speed"]["arms"]] == [True, True]


def test_a_slower_reference_kernel_alone_makes_nothing_faster(save, check):
    save()
    result = check(reference_kernel_s=REFERENCE_KERNEL_S * 1.3)
    assert (result.returncode, len(verdicts(result))) == (0, 2)
    assert verdicts(result) == ["NO REGRESSION  baseline", "NO REGRESSION  mine"]
    assert words(result.stdout).count("only the reference kernel changed: as measured, ") == 2


def test_a_loss_of_less_than_half_the_threshold_as_measured_does_not_count(save, check):
    """The reference kernel is 10% faster; a loss of 2% as measured may be the day's, one of 4% is a regression."""
    save(noise=0.002)
    planted = {"reference_kernel_s": REFERENCE_KERNEL_S / 1.1, "noise": 0.002}
    for slower, status in ((1.02, 0), (1.04, 1)):
        result = check(slower={"baseline": slower, "mine": slower}, **planted)
        assert result.returncode == status, result.stdout
        assert [one.startswith("REGRESSION") for one in verdicts(result)] == [status == 1] * 2


def test_blocks_that_go_together_make_the_interval_wider(save, check):
    """The same times in another order: six slow blocks and then six fast ones tell less than slow and fast in turn."""

    def interval(order):
        def change(document):
            spread = [0.97 if number in order else 1.03 for number in range(12)]
            document["arms"]["mine"]["step_s"] = [0.5 * one * (1 + number * 1e-4) for number, one in enumerate(spread)]
            document["reference_kernel"]["seconds"] = [REFERENCE_KERNEL_S] * 12

        signed(path, change)
        mine = json.loads(check("--json", blocks=12).stdout)["speed"]["arms"][1]["normalised"]
        return mine["high"] / mine["low"], mine["autocorrelation"]

    path = save(blocks=12)
    in_turn, alternating = interval(range(0, 12, 2))
    together, clustered = interval(range(6))
    assert (alternating, clustered > 0.6) == (0.0, True)
    assert together - 1 > 2 * (in_turn - 1)


def test_another_number_of_steps_left_out_is_said(save, check, diff):
    save()
    note = "the baseline left out the first 0 timed steps of each sample, this run 1"
    assert note in words(check(skipped_steps=1).stdout)
    assert "left out" not in check().stdout
    save("new", skipped_steps=1)
    assert note in words(diff().stdout)
    document = json.loads(diff("--json").stdout)
    assert [document[when]["skipped_steps"] for when in ("then", "now")] == [0, 1]


def test_another_reference_kernel_leaves_only_ratios(save, check):
    save()
    result = check(reference_kernel=OTHER, machine=1.5, slower={"mine": 1.2}).ended(1)
    assert "so speeds can't be normalised" in words(result.stdout)
    baseline, mine = verdicts(result)
    assert (baseline, mine) == ("NOT COMPARED  baseline", "REGRESSION  mine")
    result = check(reference_kernel=OTHER, machine=1.5, slower={"baseline": 1.2, "mine": 1.2}).ended(0)
    assert "a slowdown of all profiles alike goes unseen" in words(result.stdout)


def test_another_reference_kernel_and_no_ratio_either(save, check_refused, tmp_path):
    only = {"arms": (records.arm("baseline"),)}
    save(**only)
    message = check_refused(session(tmp_path / "now", reference_kernel=OTHER, **only))
    assert "the reference kernel changed" in message
    assert "there is no ratio to compare instead" in message


def test_several_profiles_share_the_error_rate(save, check):
    arms = [records.arm(name) for name in ("baseline", "mine", "third")]
    save(arms=arms)
    result = check(arms=arms)
    assert "98.33% CI" in result.stdout


def change_plan(**fields):
    def change(run):
        run["study"] |= fields

    return change


def trains(name="cnn", **fields):
    """Train the workload ``name``, and so much of it."""
    return change_plan(workload=name, workloads={name: {**TRAINING, **fields}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_inspection("fingerprint", cpu_model="Another CPU"), f"{CPU} Another CPU (model 1)"),
        (change_inspection("fingerprint", cpu_numbers="model 2"), f"{CPU} Simulated CPU (model 2)"),
        (change_inspection("facts", usable_cpus=3), "the number of usable CPUs was 4 and is now 3"),
        (trains(steps=7), "the study's steps was 3 and is now 7"),
        (trains(warmup_steps=5), "the study's warmup steps was 1 and is now 5"),
        (trains("other"), "the study's workload was cnn and is now other"),
        (
            change_plan(options={**asdict(Options()), "scale": 2}),
            "the mode of training was as usual and is now scale 2",
        ),
    ],
)
def test_what_can_not_be_compared_is_refused_and_named(save, check_refused, folder, tmp_path, change, said):
    save()
    message = check_refused(rewrite(session(tmp_path / "now"), change))
    assert message.startswith(f"envkit: {folder}/old.json: can't be compared with what is measured now: {said}; save")


@pytest.mark.parametrize("what", ["data", "code"])
def test_other_data_or_code_are_refused(save, check_refused, tmp_path, what):
    save()
    made = session(tmp_path / "now")
    path = made / record.FILE_NAME
    path.write_text(path.read_text().replace({"data": "d" * 64, "code": "c" * 64}[what], "9" * 64))
    said = f"the digest of the workload's {what} was {what[0] * 12} and is now 999999999999"
    assert said in check_refused(made)


def test_a_run_without_the_profile_is_refused(save, check_refused, tmp_path):
    save()
    made = session(tmp_path / "now", arms=(records.arm("baseline"), records.arm("yours")))
    assert "can't be compared with what is measured now: 'mine' was not measured;" in check_refused(made)


def test_options_of_a_measurement_with_a_record(save, check_refused, tmp_path):
    save()
    said = "envkit: --timeout has no effect with --against, which measures nothing; leave it out"
    assert check_refused(tmp_path, "--timeout", "60s") == said


def test_json_for_scripts(save, check):
    save()
    result = check("--json", slower={"mine": 1.2})
    document = json.loads(result.stdout)
    assert (result.returncode, document["regression"], document["differences"]) == (1, True, [])
    baseline, mine = document["speed"]["arms"]
    assert (baseline["verdict"], mine["verdict"]) == ("no regression", "regression")
    assert mine["normalised"]["low"] < mine["normalised"]["ratio"] < mine["normalised"]["high"] < 0.95
    assert mine["relative"]["ratio"] == pytest.approx(1 / 1.2, abs=0.02)
    assert document["speed"]["confidence"] == 0.975
    assert document["then"]["blocks"] == document["now"]["blocks"] == BLOCKS
