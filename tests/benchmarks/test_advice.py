"""The fits behind advice, and the page that judges them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from envkit.advice.expected import Fitted
from envkit.stats.interval import Speedup

from benchmarks import advice, fitting, gallery_atlas
from benchmarks.gallery_atlas import ATLAS, Agreement, Gain
from benchmarks.judged import Training, fits_of, judged, trainings_of
from tests.benchmarks.conftest import refusal

KERNEL = [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.01, 0.12, 0.22]


def of(gain):
    return Gain(gain, 8, Speedup(gain, gain * 0.98, gain * 1.02, 8, 0.02), None)


def seen(kernel):
    return {"kernel": kernel, "matrix": None}


@pytest.fixture
def trainings():
    """What one profile gains follows from the kernel's share, nearly; another costs 5% always."""
    return [
        Training(
            f"training-{number}",
            seen(kernel),
            {"helps": of(math.exp(1.2 * kernel + 0.004 * (-1) ** number)), "costs": of(0.95)},
        )
        for number, kernel in enumerate(KERNEL)
    ]


def test_a_fit_finds_what_gains_follow_from(trainings):
    gains = [math.log(one.gains["helps"].ratio) for one in trainings]
    made, half = fitting.best(fitting.WATCHED, [one.features for one in trainings], gains)
    fit = fitting.as_fit(made, half)
    assert fit.of(seen(0.5)) == pytest.approx(0.6, abs=0.05)
    assert made.predict(seen(0.5)) == pytest.approx(fit.of(seen(0.5)), abs=1e-5)
    assert 0 < half < 0.02


def test_what_was_not_seen_of_all_is_no_choice(trainings):
    made, _ = fitting.best([("matrix",), ()], [one.features for one in trainings], [0.1] * len(trainings))
    assert made.names == ()
    assert made.predict(seen(0.3)) == pytest.approx(0.1)


def test_the_error_of_a_training_is_that_of_a_fit_without_it():
    """The mean of the others is off by more than the mean of all."""
    assert fitting.errors((), 1.0, [{}] * 3, [0.0, 0.0, 0.3]) == pytest.approx([-0.15, -0.15, 0.3])


def test_the_same_training_on_another_machine_is_left_out_with_it():
    assert fitting.errors((), 1.0, [{}] * 4, [0.0, 0.0, 0.3, 0.3], "aabb") == pytest.approx([-0.3, -0.3, 0.3, 0.3])


def test_a_range_holds_seven_of_ten():
    assert fitting.half_width([0.1, -0.2, 0.3, -0.4, 0.5, 0.6, -0.7, 0.8, 0.9]) == 0.7


def test_each_training_is_judged_by_the_others(trainings):
    found = judged(trainings, fitting.WATCHED)
    helped = [one for one in found if one.training.best > 1.05]
    assert all(one.advised is not None and one.advised.profile == "helps" for one in helped)
    assert all(one.near for one in found)
    assert not any(one.false_hope for one in found)
    assert sum(inside for one in found for inside in one.within) >= 0.6 * 2 * len(found)


def test_one_that_is_unlike_all_others_is_an_error_that_is_told(trainings):
    odd = Training("odd", seen(0.4), {"helps": of(0.9), "costs": of(0.95)})
    found = judged([*trainings, odd], fitting.WATCHED)[-1]
    assert (found.false_hope, found.near, found.gained) == (True, False, 0.9)


def test_the_advisor_that_watches_nothing_is_a_row_judged_by_the_others(trainings):
    """One training gains nothing by what helps the others, and the same profile is advised for it all the same."""
    odd = Training("odd", seen(0.4), {"helps": of(0.9), "costs": of(0.95)})
    found = judged([*trainings, odd], [()])
    assert {one.advised.profile for one in found if one.advised} == {"helps"}
    mean = math.exp(sum(math.log(one.gained) for one in found) / len(found))
    assert advice._known(advice.CONSTANT, found)[-1] == f"{mean:.3f}"
    assert not found[-1].near


def test_with_two_machines_a_training_is_judged_by_the_other_machine_alone(trainings):
    """On the other machine the same profile costs what it gains here, so each machine's advice fails on the other."""
    here = [replace(each, machine="A") for each in trainings]
    inverse = {"helps": of(0.8), "costs": of(1.2)}
    there = [replace(each, machine="B", gains=inverse) for each in trainings]
    found = judged([*here, *there], fitting.WATCHED)
    assert {one.advised.profile for one in found if one.training.machine == "A" and one.advised} == {"costs"}
    assert {one.advised.profile for one in found if one.training.machine == "B" and one.advised} == {"helps"}


def test_with_two_machines_a_fit_may_take_a_term_of_the_machine(trainings):
    """What a profile gains is larger on one machine, by the cost of its page faults."""
    known = [
        replace(each, machine=name, features={**each.features, "intel": 0.0, "shared_cores": 0.0, "fault_us": cost},
                gains={"helps": of(each.gains["helps"].ratio * math.exp(cost))})
        for name, cost in (("A", 0.2), ("B", 0.8)) for each in trainings
    ]  # fmt: skip
    made, _ = fits_of(known, "helps", fitting.WATCHED)
    assert set(made.names) == {"kernel", "fault_us"}


def test_a_profile_whose_losses_differ_is_never_the_best_and_gains_nothing(trainings):
    """Nothing else gains there, so that the model's advice is of no use."""
    differs = replace(of(1.6), losses=Agreement(0.119, False))
    odd = Training("odd", seen(0.4), {"helps": differs, "costs": of(0.95)})
    judgement = judged([*trainings, odd], fitting.WATCHED)[-1]
    assert judgement.advised is not None
    assert (judgement.advised.profile, judgement.gained, odd.best) == ("helps", 1.0, 1.0)
    assert judgement.false_hope
    cells = advice._row(judgement)
    assert cells[3].endswith("LOSSES DIFFER")
    assert cells[4] == "nothing set"


def test_the_page_and_the_fits_are_made_from_the_data_files_alone(benchmark_script, tmp_path):
    fit, written = tmp_path / "fit.json", tmp_path / "page.md"
    result = benchmark_script(advice, "--fit", fit, "--page", written, "--runs", "2")
    assert (result.returncode, result.stderr) == (0, "")
    document = Fitted.from_json(json.loads(fit.read_text()))
    assert len(document.trainings) >= 12
    assert document.machines
    text = written.read_text()
    machines = {each.machine for each in trainings_of(gallery_atlas.charts(gallery_atlas.read_sessions(ATLAS)))}
    assert all(name in text for name in machines)
    assert "one profile for all without a vendor's check overridden: " in text


def test_the_output_of_a_run_becomes_the_example_of_the_page(benchmark_script, tmp_path):
    """Fits that were made since are told, as the example's figures are then of earlier ones."""
    printed, data, written = tmp_path / "run.txt", tmp_path / "advice.jsonl", tmp_path / "page.md"
    printed.write_text("$ envkit advise -- python train.py\nTry this first.\n\nprofile  expected\n")
    files = ("--results", data, "--fit", tmp_path / "fit.json", "--page", written, "--runs", "2")
    assert benchmark_script(advice, "--example", printed, *files).returncode == 0
    assert "```sh\nenvkit advise -- python train.py\n```\n\n```text\nTry this first.\n\nprofile" in written.read_text()
    assert advice.EARLIER_FIT in written.read_text()
    assert benchmark_script(advice, "--example", printed, *files).returncode == 0
    assert advice.EARLIER_FIT not in written.read_text()


def test_an_output_without_its_command_is_no_example(benchmark_script, tmp_path):
    (printed := tmp_path / "run.txt").write_text("Try this first.\n")
    assert "its first line is not '$ envkit advise …'" in refusal(
        benchmark_script(advice, "--example", printed, "--results", tmp_path / "advice.jsonl")
    )


def test_without_the_map_there_is_nothing_to_judge(benchmark_script, tmp_path):
    said = refusal(benchmark_script(advice, "--atlas", tmp_path / "none"))
    assert said.startswith(f"advice: {tmp_path}/none: has 0 trainings of the gallery that were watched, and it takes 6")
