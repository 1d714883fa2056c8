"""The fits behind advice, and the page that judges them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from envkit.advice.expected import Fitted
from envkit.stats.interval import Speedup

from benchmarks import advice, fitting, gallery_atlas, regret
from benchmarks.gallery_atlas import ATLAS, Gain
from benchmarks.judged import Training, fits_of, judged, trainings_of
from tests.benchmarks.conftest import refusal

NOISE = [-0.04, 0.03, 0.01, -0.02, 0.05, -0.01, 0.0, 0.02]
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


def test_a_race_among_the_first_takes_the_best_of_them(trainings):
    odd = Training("odd", seen(0.4), {"helps": of(0.9), "costs": of(0.95), "surprise": of(1.5)})
    others = [replace(each, gains={**each.gains, "surprise": of(1.04)}) for each in trainings]
    found = judged([*others, odd], fitting.WATCHED, raced=3)[-1]
    assert (found.chosen, found.gained) == ("surprise", 1.5)


def test_only_profiles_that_are_allowed_are_advised(trainings):
    found = judged(trainings, fitting.WATCHED, lambda name: name != "helps")
    assert all(one.advised is None for one in found)


def test_the_regret_of_the_best_is_the_noise_alone_and_that_of_another_is_what_it_loses():
    """The best is 1.5 times as fast as the baseline and 1.25 times as fast as the other."""
    ratios = {name: [math.log(gain) + noise for noise in NOISE] for name, gain in (("best", 1.5), ("other", 1.2))}
    draws = [regret.draws_of_blocks(ratios, name) for name in "abcd"]
    best = regret.pooled(draws, ["best"] * 4)
    assert (best.mean, best.bound) == pytest.approx((0, 0), abs=1e-9)
    other = regret.pooled(draws, ["other"] * 4)
    assert (other.mean, other.bound) == pytest.approx((0.25, 0.25), abs=1e-6), "the noise of a block is both profiles'"
    assert regret.pooled(draws, [None] * 4).mean == pytest.approx(0.5, abs=0.01)


def test_a_published_interval_stands_for_the_samples_that_were_not_kept():
    draws = regret.draws_of_intervals({"best": of(1.5).speedup, "other": of(1.4).speedup}, 0.05, "a")
    found = regret.pooled([draws] * 4, ["other"] * 4)
    assert found.mean == pytest.approx(1.5 / 1.4 - 1, abs=0.005)
    assert found.mean < found.bound < 0.12


def test_the_page_and_the_fits_are_made_from_the_data_files_alone(benchmark_script, tmp_path):
    fit, written = tmp_path / "fit.json", tmp_path / "page.md"
    result = benchmark_script(advice, "--fit", fit, "--page", written)
    assert (result.returncode, result.stderr) == (0, "")
    document = Fitted.from_json(json.loads(fit.read_text()))
    assert len(document.trainings) >= 12
    assert document.machines
    text = written.read_text()
    machines = {each.machine for each in trainings_of(gallery_atlas.charts(gallery_atlas.read_sessions(ATLAS)))}
    assert all(name in text for name in machines)
    assert "| nothing: always the same, no vendor's check overridden |" in text


def test_without_the_map_there_is_nothing_to_judge(benchmark_script, tmp_path):
    said = refusal(benchmark_script(advice, "--atlas", tmp_path / "none"))
    assert said.startswith(f"advice: {tmp_path}/none: has 0 trainings of the gallery that were watched, and it takes 6")
