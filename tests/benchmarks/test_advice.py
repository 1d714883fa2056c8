"""The fits behind advice, and the page that judges them."""

from __future__ import annotations

import math

import pytest
from envkit.stats.interval import Speedup

from benchmarks import advice, fitting
from benchmarks.advice import Training, judged

KERNEL = [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.01, 0.12, 0.22]


def of(gain):
    return Speedup(gain, gain * 0.98, gain * 1.02, 8, 0.02)


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


def test_without_the_map_there_is_nothing_to_judge(benchmark_script, tmp_path):
    from tests.benchmarks.conftest import refusal

    said = refusal(benchmark_script(advice, "--map", tmp_path / "none"))
    assert said.startswith(
        f"advice: {tmp_path}/none: has 0 whole runs of the gallery, and it takes 6 or more; make them"
    )
