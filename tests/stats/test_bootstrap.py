from __future__ import annotations

import math

import numpy
import pytest
from envkit.stats.bootstrap import bootstrap


def runs(generator, blocks, ratio=1.0, between=0.02, within=0.05, steps=60, lasting=0.0):
    """Step times of two arms whose speedup is ``ratio``.

    ``between`` is the noise of a sample as a whole, ``within`` that of its steps, of which each resembles the one
    before it by ``lasting``.
    """

    def sample(level):
        noise = generator.normal(0, 1, steps)
        for step in range(1, steps):
            noise[step] = lasting * noise[step - 1] + math.sqrt(1 - lasting**2) * noise[step]
        return list(level * generator.lognormal(0, between) * numpy.exp(within * noise))

    return [sample(ratio) for _ in range(blocks)], [sample(1.0) for _ in range(blocks)]


def test_blocks_are_drawn_with_both_arms_together():
    """In every block the profile takes exactly half the time, however much the blocks differ."""
    levels = [2.0, 20.0, 4.0, 8.0, 6.0, 100.0]
    found = bootstrap([[level] * 5 for level in levels], [[level / 2] * 5 for level in levels])
    assert (found.low, found.high) == (pytest.approx(2.0), pytest.approx(2.0))


def test_one_record_gives_one_answer():
    reference, profile = runs(numpy.random.default_rng(1), 8)
    assert bootstrap(reference, profile) == bootstrap(reference, profile)


def test_the_unit_of_time_does_not_matter():
    reference, profile = runs(numpy.random.default_rng(2), 8)
    one, other = bootstrap(reference, profile), bootstrap(
        [[step * 1000 for step in steps] for steps in reference], [[step * 1000 for step in steps] for steps in profile]
    )  # fmt: skip
    assert (one.low, one.high, one.within_share) == pytest.approx((other.low, other.high, other.within_share))


@pytest.mark.parametrize("blocks", [0, 1])
def test_too_few_blocks(blocks):
    assert bootstrap([[1.0]] * blocks, [[1.0]] * blocks) is None


def test_samples_of_a_single_step():
    found = bootstrap([[1.0], [1.1], [0.9]], [[0.5], [0.5], [0.5]])
    assert 1.8 <= found.low < 2 < found.high <= 2.2
    assert found.within_share == pytest.approx(0)


def test_whose_noise_it_is():
    """All noise from the steps; all from the samples; and no noise at all."""
    generator = numpy.random.default_rng(3)
    assert bootstrap(*runs(generator, 30, between=0.0)).within_share > 0.6
    assert bootstrap(*runs(generator, 30, within=0.0)).within_share == pytest.approx(0)
    assert bootstrap(*runs(generator, 30, between=0.0, within=0.0)).within_share == 0
    mixed = bootstrap(*runs(generator, 60, between=0.01, within=0.01 * math.sqrt(60))).within_share
    assert 0.3 < mixed < 0.7


def test_steps_that_resemble_their_neighbours_are_not_taken_for_independent_ones():
    """The same steps in random order look as if a sample's mean were known better than it is."""
    generator = numpy.random.default_rng(4)
    reference, profile = runs(generator, 2, between=0.0, steps=400, lasting=0.9)
    shuffled = [[list(generator.permutation(steps)) for steps in arm] for arm in (reference, profile)]
    # with two blocks that are alike, what is left is the noise of the steps
    for arm in (reference, profile, *shuffled):
        arm[1] = arm[0]
    lasting, independent = bootstrap(reference, profile), bootstrap(*shuffled)
    assert math.log(lasting.high / lasting.low) > 1.5 * math.log(independent.high / independent.low)


def test_it_finds_a_difference_and_is_about_as_wide_as_it_should_be():
    """The ratio of two means of 25 blocks that vary by 3% has a standard error of 0.03 * sqrt(2 / 25)."""
    found = bootstrap(*runs(numpy.random.default_rng(5), 25, ratio=1.1, between=0.03, within=0.0))
    assert found.low < 1.1 < found.high
    assert math.log(found.high / found.low) == pytest.approx(2 * 1.96 * 0.03 * math.sqrt(2 / 25), rel=0.35)
