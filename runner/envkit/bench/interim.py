"""How things stand while a run goes on: interim results, which decide nothing."""

from __future__ import annotations

from envkit.bench.arms import View
from envkit.bench.messages import InterimBest, InterimSpeedup
from envkit.bench.run import Run
from envkit.common.messages import Clauses
from envkit.messages import Message
from envkit.stats.interval import ERROR_RATE, speedup

# Of more profiles only the best is shown.
MOST_PROFILES = 3


def standing(run: Run) -> Message | None:
    """Return the speedups after the blocks of ``run``; None before the first interval.

    Each interval is that of one comparison, of which 95% hold the truth if nobody chooses when to look.
    """
    study = run.study
    shown = [study.whole] if study.view is View.SETTINGS else study.compared
    found = []
    for arm in shown:
        interval = speedup(run.block_ratios(arm), ERROR_RATE, study.stopping.margin)
        if interval is not None:
            found.append(InterimSpeedup(arm.name, interval.ratio, interval.low, interval.high))
    if len(found) > MOST_PROFILES:
        return InterimBest(len(found), max(found, key=lambda one: one.ratio))
    return Clauses(tuple(found)) if found else None
