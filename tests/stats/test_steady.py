from __future__ import annotations

import numpy as np
import pytest
from envkit.stats.messages import InvalidTimesError, UnequalLengths
from envkit.stats.steady import MIN_STEPS, Steady, steady
from hypothesis import given
from hypothesis import strategies as st

STEPS = 220
NOISE = 0.05
AT = np.arange(STEPS)


def independent(seed, samples, noise, steps):
    generator = np.random.default_rng(seed)
    size = (samples, steps)
    if noise == "heavy":
        return np.exp(NOISE * generator.standard_t(3, size))
    times = 1 + NOISE * generator.normal(size=size)
    if noise == "spikes":
        times *= np.where(generator.random(size) < 0.02, 5.0, 1.0)
    return times


def flat_runs(seeds, samples, noise="normal", steps=STEPS):
    """Step times about 1, per run, sample and step."""
    times = np.stack([independent(seed, samples, noise, steps) for seed in seeds])
    if noise == "correlated":  # neighbours by 0.6
        for step in range(1, steps):
            times[..., step] = 1 + 0.6 * (times[..., step - 1] - 1) + 0.8 * (times[..., step] - 1)
    return times


def flat(seed, samples, noise="normal", steps=STEPS):
    """Step times about 1, per sample and step."""
    return flat_runs([seed], samples, noise, steps)[0]


def decay(height, length):
    """Falls from 1 + ``height`` to within 5% of that at ``length`` steps."""
    return 1 + height * np.exp(-3 * AT / length)


def first(length, height):
    return 1 + height * (length > AT)


def typical(shape, samples, noise="normal", runs=40):
    """The quartiles of the steps found, over several runs."""
    found = [steady(times * shape).steps for times in flat_runs(range(runs), samples, noise)]
    return np.quantile(found, [0.25, 0.75])


@pytest.mark.parametrize("samples", [1, 2, 3, 10])
@pytest.mark.parametrize("noise", ["normal", "heavy", "spikes", "correlated"])
def test_on_a_flat_curve_it_seldom_drops_more_than_a_few_steps(noise, samples):
    found = [steady(times) for times in flat_runs(range(100), samples, noise)]
    assert np.mean([one.steps > 5 for one in found]) < 0.1
    assert np.mean([one.reached for one in found]) > 0.97


@pytest.mark.parametrize("noise", ["normal", "heavy", "correlated"])
@pytest.mark.parametrize("steps", [48, 72, 89])
def test_a_pilot_is_long_enough_to_tell_a_warm_up_from_none(steps, noise):
    runs = flat_runs(range(200), 1, noise, steps)
    steady_ones = [steady(times) for times in runs]
    assert np.mean([one.steps > 5 for one in steady_ones]) < 0.05
    assert np.mean([one.reached for one in steady_ones]) > 0.98
    slow_start = first(12, 0.3)[:steps]
    cuts = [steady(times * slow_start).steps for times in runs]
    assert np.mean([10 <= cut <= 18 for cut in cuts]) > 0.85


@pytest.mark.parametrize("samples", [1, 2, 10])
@pytest.mark.parametrize("noise", ["normal", "heavy", "spikes"])
@pytest.mark.parametrize("length", [10, 20, 40, 80])
def test_a_planted_step_is_found_where_it_is(length, noise, samples):
    low, high = typical(first(length, 0.3), samples, noise)
    assert length - 5 <= low <= high <= length + 5


@pytest.mark.parametrize("samples", [2, 10])
@pytest.mark.parametrize("length", [20, 40, 60])
def test_a_planted_decay_is_cut_where_little_is_left_of_it(length, samples):
    low, high = typical(decay(1.0, length), samples)
    assert decay(1.0, length)[int(low)] < 1 + 2 * NOISE
    assert high <= 2 * length


def test_a_warm_up_may_be_fast_too():
    low, high = typical(first(30, -0.3), 3)
    assert 25 <= low <= high <= 35


@pytest.mark.parametrize("slow", [1, 2])
def test_one_or_two_slow_first_steps_are_found(slow):
    low, high = typical(first(slow, 9.0), 3)
    assert slow <= low <= high <= 5


@pytest.mark.parametrize("samples", [1, 2])
def test_a_single_spike_is_no_warm_up(samples):
    times = flat(1, samples)
    assert steady(times).steps == 0
    times[0, 60] = 50.0
    times[-1, 7] = 20.0
    assert steady(times) == Steady(0, reached=True)


def test_what_never_becomes_steady_is_said_so():
    found = [steady(flat(seed, 3) * (3 - 2 * AT / STEPS)) for seed in range(20)]
    assert all(one == Steady(STEPS // 2, reached=False) for one in found)


def test_a_warm_up_too_small_to_matter_is_left_in():
    times = np.random.default_rng(1).normal(1, 0.001, (3, STEPS))
    assert steady(times * first(40, 0.04)).steps == 0
    assert steady(times * first(40, 0.06)).steps == 40


def test_levels_of_processes_that_differ_are_no_warm_up():
    levels = np.array([[1.0], [1.4], [0.7]])
    assert steady(flat(1, 3) * levels) == steady(flat(1, 3))


@pytest.mark.parametrize("length", [0, 1, 7, 50])
def test_without_any_noise(length):
    assert steady([first(length, 1.0)]).steps in range(length, length + 5)
    assert steady([[0.02] * STEPS] * 3) == Steady(0, reached=True)


def test_a_slow_start_whose_very_first_step_is_not_is_found_before_times_that_are_exactly_alike():
    assert steady([[1.0] + [1.3] * 9 + [1.0] * (STEPS - 10)]) == Steady(10, reached=True)


def test_too_few_steps_say_nothing():
    assert steady([]) is None
    assert steady(flat(1, 5, steps=MIN_STEPS - 1)) is None
    assert steady(flat(1, 5, steps=MIN_STEPS)) is not None


def test_samples_of_different_lengths_are_refused():
    with pytest.raises(InvalidTimesError) as error:
        steady([[1.0] * 3, [1.0] * 5])
    assert error.value.message == UnequalLengths(3, 5)


CURVES = st.integers(1, 4).flatmap(
    lambda samples: st.lists(
        st.lists(st.floats(1e-4, 10), min_size=MIN_STEPS, max_size=MIN_STEPS), min_size=samples, max_size=samples
    )
)


@given(curves=CURVES, unit=st.sampled_from([2.0**-10, 0.5, 1024.0]))
def test_never_more_than_half_and_the_unit_and_order_of_samples_do_not_matter(curves, unit):
    found = steady(curves)
    assert 0 <= found.steps <= MIN_STEPS // 2
    assert found.reached is (found.steps < MIN_STEPS // 2)
    assert steady([[second * unit for second in curve] for curve in curves[::-1]]) == found
