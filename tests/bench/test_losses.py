"""How the losses of a user's command are compared: each side has the curve of every sample."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from envkit.bench import losses

CURVE = (2.0, 1.5, 1.001)  # a difference of the last digit, 0.001, does not count


def side(*curves, samples=6):
    return [SimpleNamespace(known_losses=list(curves[number % len(curves)])) for number in range(samples)]


def test_the_last_losses_are_told_as_the_mean_of_each_side():
    found = losses.of_command(side((2.0, 1.5, 1.1), (2.0, 1.5, 1.3)), side((2.0, 1.5, 0.8), (2.0, 1.5, 1.2)))
    assert found is not None
    assert (found.steps, found.reference_final, found.final) == (3, pytest.approx(1.0), pytest.approx(1.2))


def test_losses_that_repeat_must_be_equal_and_others_may_differ_by_chance():
    assert losses.of_command(side(CURVE), side(CURVE)).agree
    assert not losses.of_command(side((2.0, 1.5, 1.101)), side(CURVE)).agree
    varied = side(CURVE, (2.0, 1.6, 1.101))
    assert losses.of_command(side((2.0, 1.55, 1.06)), varied).agree


@pytest.mark.parametrize(("samples", "curve"), [(5, CURVE), (6, ())])
def test_too_few_samples_and_losses_that_are_not_read_are_not_compared(samples, curve):
    assert losses.of_command(side(curve, samples=samples), side(CURVE)) is None
    assert losses.of_command(side(CURVE), side(curve, samples=samples)) is None
