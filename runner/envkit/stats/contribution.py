"""The contribution of one of several settings, from intervals that hold at once.

Three speedups say it: of all settings over none, of the setting alone over none, and of all over all but that one.
Where a setting is said to be worth more in one place than in the other, the two intervals lie apart; as all hold
together at the run's error rate, so does that.
"""

from __future__ import annotations

import math

from envkit.common.text_enum import TextEnum
from envkit.stats.interval import Speedup
from envkit.stats.verdict import Verdict

# Alone it does it that has, by the estimates, so large a share of what all have together, in logarithms.
MOST = 0.8


class Contribution(TextEnum):
    """The contribution of a setting, as JSON documents name it. Differences within the margin count as none."""

    ALONE = "alone"  # it gives what all settings give together
    NEEDED = "needed"
    TOGETHER = "together"  # it helps only together with others
    REPLACED = "replaced"  # it helps alone, and all lose less without it than it is worth alone
    HELPS = "helps"  # it helps alone; whether all of them need it was not found
    COSTS = "costs"
    EQUIVALENT = "equivalent"
    NOT_FOUND = "not-found"
    UNKNOWN = "unknown"


# What is left out where only settings count that do something.
NO_DIFFERENCE = (Contribution.EQUIVALENT, Contribution.NOT_FOUND, Contribution.UNKNOWN)


def contribution(complete: Speedup | None, alone: Speedup | None, without: Speedup | None) -> Contribution:
    """``complete`` is that of all settings; ``alone`` that of one; ``without`` that of all over all but that one.

    One that is None is not known.
    """
    if alone is None and without is None:
        return Contribution.UNKNOWN
    loses, gains = _difference(without), _difference(alone)
    if loses == Verdict.SLOWER:
        return Contribution.COSTS
    if alone is not None and gains == Verdict.FASTER:
        return _of_gain(complete, alone, without)
    if without is not None and loses == Verdict.FASTER:
        return Contribution.TOGETHER if alone and alone.high < without.low else Contribution.NEEDED
    if gains == Verdict.SLOWER:
        return Contribution.COSTS
    none = all(speedup is not None and _is_none(speedup) for speedup in (alone, without))
    return Contribution.EQUIVALENT if none else Contribution.NOT_FOUND


def _of_gain(complete: Speedup | None, alone: Speedup, without: Speedup | None) -> Contribution:
    """Judge a setting that makes training faster alone."""
    loses = _difference(without) == Verdict.FASTER
    if without is not None and not loses and without.high < alone.low:
        return Contribution.REPLACED
    gain = math.log(complete.ratio) if complete is not None and _difference(complete) == Verdict.FASTER else math.inf
    if math.log(alone.ratio) >= MOST * gain:
        return Contribution.ALONE
    return Contribution.NEEDED if loses else Contribution.HELPS


def _is_none(speedup: Speedup) -> bool:
    return speedup.verdict == Verdict.EQUIVALENT or speedup.within_margin


def _difference(speedup: Speedup | None) -> Verdict | None:
    """FASTER or SLOWER where a difference that matters was found."""
    decided = speedup is not None and not _is_none(speedup) and speedup.verdict in (Verdict.FASTER, Verdict.SLOWER)
    return speedup.verdict if speedup is not None and decided else None
