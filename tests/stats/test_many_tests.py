"""How many of many tests to believe, and how unlikely it is that what they chose has something in common."""

from __future__ import annotations

import numpy
import pytest
import scipy
from envkit.stats.many_tests import at_least, believed, level

# The example of Benjamini and Hochberg (1995), section 3: 15 p-values of a clinical trial.
PUBLISHED = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip


def test_the_published_example():
    assert believed(numpy.array(PUBLISHED[::-1]), 0.05) == 4
    assert believed(numpy.array([]), 0.05) == 0
    assert believed(numpy.array([0.5, 0.6]), 0.05) == 0


@pytest.mark.parametrize("effects", [0, 5, 200])
def test_those_believed_are_the_ones_not_above_the_level(effects):
    random = numpy.random.default_rng(effects)
    p_values = random.uniform(size=1000)
    p_values[:effects] *= 1e-5
    chosen = believed(p_values, 0.01)
    assert chosen >= 0.9 * effects
    assert int((p_values <= level(chosen, 1000, 0.01)).sum()) == chosen


def test_what_is_believed_is_seldom_wrong():
    random = numpy.random.default_rng(1)
    wrong = []
    for _ in range(2000):
        p_values = random.uniform(size=100)
        p_values[:10] *= 1e-3
        limit = level(believed(p_values, 0.1), 100, 0.1)
        chosen = p_values <= limit
        wrong.append(chosen[10:].sum() / max(1, chosen.sum()))
    assert 0.07 <= numpy.mean(wrong) <= 0.1


@pytest.mark.parametrize(("common", "having", "chosen", "everything"), [
    (1, 1, 1, 10), (3, 40, 5, 100), (0, 4, 2, 20), (5, 5, 5, 10_000), (2, 9_990, 2, 10_000), (90, 100, 120, 10_000),
    (10, 10, 10, 10),
])  # fmt: skip
def test_it_is_fishers_exact_test(common, having, chosen, everything):
    table = [[common, having - common], [chosen - common, everything - having - chosen + common]]
    expected = scipy.stats.fisher_exact(table, alternative="greater").pvalue
    assert at_least(common, having, chosen, everything) == pytest.approx(expected, rel=1e-6)
