"""Which of several arms may be the fastest: the set that can't be told from it, and arms that leave a run early.

A race chooses one arm and claims nothing: after prespecified blocks the slower half leaves (sequential halving). Later
samples, which did not choose the winner, tell its gain. docs/results/race.md has simulated races.

Each arm is compared with the leader, block by block, by the intervals of ``sequential.py``. The comparisons of the
truly fastest arm with all others share the error rate, over all looks. An arm that is slower than the leader at a look
is dropped, and its time goes to the others. So the fastest arm is dropped, or missing in the set at the end, in at most
5% of runs (multiple comparisons with the best; Hsu 1981, 1984). The verdict of an arm that was dropped is that of its
look, by an interval that is valid whenever an arm leaves (a repeated confidence interval). Reports have the narrower
interval of an early stop instead (``sequential.at_end``). It is not valid at every look. In simulated runs that drop
arms, all intervals of a run hold the truth in at least 95% of runs (tests/benchmarks/test_selection.py).

A run may stop once the leader's own verdict is decided and no other arm can be much faster than the leader. "Much" is
the larger of PRECISION and OF_LEADER of the leader's gain. In simulation (seven arms, gains of 0% to 50%, noise of 11%
a sample, time for 30 blocks) a fifth, a quarter, a third and half of the gain took 71%, 62%, 56% and 47% of the time.
The arm that was chosen was within 3.5% of the best in 100%, 100%, 99% and 94% of 100 runs. Without early stops and with
all arms that is 100% too. A fixed limit of 4% took 90% of the time.

docs/results/selection.md has simulated runs. Three alternatives were simulated and rejected.

Dunnett's joint critical values would make intervals 2.9% narrower than Bonferroni's for seven arms, and 1.4% for two.
They hold for normal means, and not for signed ranks.

A second baseline in each block makes intervals 8% narrower in equal time with seven arms, and 6% wider with one. Its
test is not exact, because the mean of two samples is less skewed than one sample. Under bursts and without any effect
it claims a difference in 17% of tests of 100 blocks, and one baseline does in 5%.

One-sided comparisons at twice the rate make the leader's half-width 9.5% instead of 9.6% (seven arms, 20 blocks). They
lost one of two equal arms in 5.7% of 2,500 runs.

References:
  Z. Karnin, T. Koren, O. Somekh: Almost optimal exploration in multi-armed bandits. ICML (2013) (sequential halving).
  J. C. Hsu: Simultaneous confidence intervals for all distances from the "best". Annals of Statistics 9 (1981).
  J. C. Hsu: Constrained simultaneous confidence intervals for multiple comparisons with the best. Annals of Statistics
  12 (1984).
  E. Paulson: A sequential procedure for selecting the population with the largest mean from k normal populations.
  Annals of Mathematical Statistics 35 (1964).
  C. Jennison, B. W. Turnbull: Interim analyses: the repeated confidence interval approach. JRSS B 51 (1989).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from envkit.stats.interval import Speedup, middle_of
from envkit.stats.sequential import PRECISION, Design
from envkit.stats.verdict import Verdict

# A run may stop where no arm can be faster than the leader by more than this share of the leader's gain, as logarithms.
OF_LEADER = 0.25


def with_best(fixed: Design, arms: int) -> Design:
    """Return the design of the comparisons of each of so many ``arms`` with all the others."""
    return replace(fixed, comparisons=max(1, arms - 1))


def leader(ratios: Mapping[str, Sequence[float]]) -> str:
    """Return the arm of the highest speedup; ``ratios`` are each arm's log ratios beside one reference."""
    return max(ratios, key=lambda arm: middle_of(ratios[arm]))


def is_slower(speedup: Speedup | None) -> bool:
    """Return whether an interval shows that an arm is slower than what it is compared with."""
    return speedup is not None and speedup.verdict is Verdict.SLOWER


def is_faster(speedup: Speedup | None) -> bool:
    """Return whether an interval shows that an arm is faster than what it is compared with."""
    return speedup is not None and speedup.verdict is Verdict.FASTER


def is_close(speedup: Speedup | None, of_leader: Speedup | None, precision: float | None) -> bool:
    """Return whether an arm can be hardly faster than the leader: by at most ``precision``, as a share.

    ``speedup`` is the arm's beside the leader, ``of_leader`` the leader's beside the reference. None takes the larger
    of PRECISION and OF_LEADER of the leader's gain.
    """
    if speedup is None or of_leader is None:
        return False
    of_gain = of_leader.ratio**OF_LEADER - 1
    return speedup.high <= 1 + (max(PRECISION, of_gain) if precision is None else precision)


def standings(ratios: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how much faster each arm is than the mean of all, as a logarithm, the fastest first.

    ``ratios`` are each arm's log ratios beside one reference, in the same blocks. The reference cancels out.
    """
    means = [fmean(of_block) for of_block in zip(*ratios.values(), strict=True)]
    middles = {
        arm: middle_of([ratio - mean for ratio, mean in zip(of_arm, means, strict=True)])
        for arm, of_arm in ratios.items()
    }
    return dict(sorted(middles.items(), key=lambda item: -item[1]))


def slower_half(ratios: Mapping[str, Sequence[float]], ruled_out: Collection[str] = ()) -> list[str]:
    """Return the slower half of the arms, by ``standings``; of an odd number the arm in the middle is not in it.

    Arms that are ``ruled_out`` rank behind all others. All of them are returned, unless no other is left.
    """
    ranked = sorted(standings(ratios), key=lambda arm: arm in ruled_out)
    allowed = sum(arm not in ruled_out for arm in ranked) or len(ranked)
    return ranked[min(allowed, len(ranked) - len(ranked) // 2) :]
