"""Arms that may be the fastest, and designs that are stretched where others leave a run."""

from __future__ import annotations

import pytest
from envkit.stats.interval import ERROR_RATE, speedup
from envkit.stats.selection import is_close, is_slower, leader, with_best
from envkit.stats.sequential import Design, at_look, design, look_rate, stretched
from envkit.stats.verdict import Verdict

MARGIN = 0.02


def test_looks_to_come_move_away_in_proportion_and_keep_their_share_of_the_spending():
    fixed = Design(40, (8, 16, 24, 32, 40), 3)
    assert stretched(fixed, 16, 64) == Design(64, (8, 16, 32, 48, 64), 3, (0.2, 0.4, 0.6, 0.8, 1.0))


def test_a_design_that_is_stretched_twice_keeps_the_first_shares():
    fixed = stretched(stretched(design(40, 3), 12, 60), 27, 90)
    assert fixed.shares == pytest.approx([look / 40 for look in design(40, 3).looks])
    assert (fixed.planned, fixed.looks[-1]) == (90, 90)
    assert list(fixed.looks) == sorted({*fixed.looks})


def test_what_looks_decided_before_does_not_change():
    fixed = design(40, 3)
    longer = stretched(fixed, 16, 70)
    for look in (8, 12, 16):
        assert look_rate(longer, look, last=False) == pytest.approx(look_rate(fixed, look, last=False), abs=1e-6)


@pytest.mark.parametrize(("blocks", "share"), [(8, 0.2), (12, 0.3), (16, 0.4), (24, 0.5), (64, 1.0), (70, 1.0)])
def test_between_looks_the_share_grows_in_proportion(blocks, share):
    longer = stretched(Design(40, (8, 16, 24, 32, 40), 1), 16, 64)
    assert longer.share(blocks) == pytest.approx(share)


def test_the_leader_has_the_highest_speedup():
    ratios = {"slow": [-0.1] * 8, "fast": [0.5, 0.6] * 4, "outlier": [0.1] * 7 + [9.0]}
    assert leader(ratios) == "fast"


def test_comparisons_with_the_best_share_the_error_rate():
    assert with_best(design(40, 7), 7).comparisons == 6
    assert with_best(design(40, 1), 1).comparisons == 1


def test_an_arm_is_slower_only_if_its_interval_says_so():
    fixed, slower = with_best(design(20, 2), 2), [-0.5 - 0.01 * number for number in range(20)]
    assert is_slower(at_look(fixed, slower, MARGIN))
    assert not is_slower(at_look(fixed, [-ratio for ratio in slower], MARGIN))
    assert not is_slower(None)


def test_an_arm_is_close_to_the_leader_if_it_can_be_hardly_faster():
    near = speedup([0.001 * number for number in range(-8, 8)], ERROR_RATE, MARGIN)
    assert near is not None
    assert near.verdict is Verdict.EQUIVALENT
    leads = speedup([0.05 + 0.001 * number for number in range(-8, 8)], ERROR_RATE, MARGIN)
    assert is_close(near, leads, None)
    assert not is_close(near, leads, 0.001)
    assert not is_close(speedup([0.1 * number for number in range(-8, 8)], ERROR_RATE, MARGIN), leads, None)
    assert not is_close(None, leads, None)


def test_beside_a_large_gain_more_is_close():
    """A leader at 2x is close to another that is at most 2 ** 0.25 times as fast."""
    wider = speedup([0.03 * number for number in range(-8, 8)], ERROR_RATE, MARGIN)
    large, small = (
        speedup([gain + 0.001 * number for number in range(-8, 8)], ERROR_RATE, MARGIN) for gain in (0.693, 0.1)
    )
    assert wider is not None
    assert 1.04 < wider.high < 1.18
    assert is_close(wider, large, None)
    assert not is_close(wider, small, None)
    assert not is_close(wider, large, 0.04)
