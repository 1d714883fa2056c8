"""What is said of one of several settings, by its three intervals."""

from __future__ import annotations

import pytest
from envkit.stats.contribution import Contribution, contribution
from envkit.stats.interval import Speedup


def found(ratio, width=0.03):
    """A speedup with its interval: ``width`` is a share on either side."""
    return None if ratio is None else Speedup(ratio, ratio / (1 + width), ratio * (1 + width), 12, 0.02)


@pytest.mark.parametrize(
    ("whole", "alone", "without", "what"),
    [
        (1.5, 1.5, 1.5, Contribution.ALONE),
        (1.5, 1.4, 1.4, Contribution.ALONE),  # more than four fifths of it
        (1.5, 1.5, 1.0, Contribution.REPLACED),  # another does the same
        (1.5, 1.2, 1.25, Contribution.NEEDED),
        (1.5, 1.01, 1.5, Contribution.TOGETHER),
        (1.5, 0.8, 1.5, Contribution.TOGETHER),
        (1.5, 1.02, 1.06, Contribution.NEEDED),  # too near to each other to say that it takes others
        (1.5, 1.1, 1.08, Contribution.NEEDED),
        (1.5, 1.06, 1.02, Contribution.HELPS),  # as near: whether others make up for it is not known
        (1.5, 1.0, 0.9, Contribution.COSTS),
        (1.5, 1.3, 0.9, Contribution.COSTS),  # what counts is the profile
        (1.5, 0.9, 1.0, Contribution.COSTS),
        (1.5, 1.0, 1.0, Contribution.NOT_FOUND),
        (1.0, 1.2, 1.2, Contribution.NEEDED),  # another one costs as much
        (1.0, 1.2, 1.15, Contribution.NEEDED),
        (0.8, 1.0, 0.8, Contribution.COSTS),
        (1.5, None, 1.5, Contribution.NEEDED),
        (1.5, None, 0.9, Contribution.COSTS),
        (1.5, None, 1.0, Contribution.NOT_FOUND),
        (1.5, 1.5, None, Contribution.ALONE),
        (1.5, 1.2, None, Contribution.HELPS),
        (1.5, 0.9, None, Contribution.COSTS),
        (1.5, None, None, Contribution.UNKNOWN),
        (None, 1.2, None, Contribution.HELPS),
    ],
)
def test_what_it_does(whole, alone, without, what):
    assert contribution(found(whole), found(alone), found(without)) == what


def test_what_is_within_the_margin_is_no_difference():
    near = found(1.01, 0.005)  # surely faster, by less than matters
    assert contribution(found(1.5), near, near) == Contribution.EQUIVALENT
    assert contribution(found(1.5), near, found(1.0, 0.1)) == Contribution.NOT_FOUND
    assert contribution(found(1.5), near, None) == Contribution.NOT_FOUND
    assert contribution(found(1.5), near, found(1.5)) == Contribution.TOGETHER
