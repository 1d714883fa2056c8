"""How things stand while a run goes on: interim results, which decide nothing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from envkit.bench.blocks import block_ratios
from envkit.bench.plan import Plan
from envkit.bench.record import Event
from envkit.stats.interval import ERROR_RATE, speedup

# Of more profiles only the best is told.
MOST_PROFILES = 3


def standing(events: Sequence[Event], plan: Plan) -> str:
    """``intel-omp 0.905 so far (0.853 to 0.961, no verdict yet)``; empty where there is nothing to compare yet.

    The interval is that of one comparison, of which 95% hold the truth where nobody chooses when to look.
    """
    told = [plan.whole] if plan.ablated else plan.compared
    found = [(arm.name, ratios) for arm in told if (ratios := block_ratios(events, plan, arm))]
    if len(found) > MOST_PROFILES:
        best = max(found, key=lambda one: statistics.median(one[1]))
        return f"best of {len(found)}: {_told(*best, plan.stopping.margin)}"
    return "; ".join(_told(name, ratios, plan.stopping.margin) for name, ratios in found)


def _told(name: str, ratios: Sequence[float], margin: float) -> str:
    interval = speedup(ratios, ERROR_RATE, margin)
    if interval is None:
        return f"{name} {math.exp(statistics.median(ratios)):.3f} so far (no interval yet)"
    return f"{name} {interval.ratio:.3f} so far ({interval.low:.3f} to {interval.high:.3f}, no verdict yet)"
