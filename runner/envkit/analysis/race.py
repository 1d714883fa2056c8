"""Who ran in a race, how fast, and when each left. A race claims nothing, so there is no interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from envkit.bench.decide import race_ratios
from envkit.bench.events import Failure
from envkit.bench.memory_limit import over_in_race
from envkit.bench.run import Run
from envkit.stats.interval import middle_of
from envkit.stats.selection import standings


@dataclass(frozen=True)
class Racer:
    """One arm of a race. ``speed`` is its speed over that of the first racer, in the blocks of both."""

    arm: str
    blocks: int  # with a sample of it
    speed: float | None = None  # None before the first complete block, and of an arm that failed
    left_after: int | None = None  # complete blocks; None: it was there until the race ended
    failed: bool = False  # a worker of it failed
    not_in_effect: bool = False  # its settings were not in effect
    over_memory: bool = False  # its peak memory was above the limit


def racers(run: Run) -> list[Racer]:
    """Return the arms of a race, the fastest first: those that left later before the others. Empty for other runs."""
    if not run.study.is_race:
        return []
    first, *others = _ranked(run)
    failed, over = {event.arm for event in run.all(Failure)}, over_in_race(run)
    shown = []
    for name in (first, *others):
        arm, dropped = run.study.arm(name), run.dropped.get(name)
        ratios = [] if name in run.withdrawn else run.block_ratios(arm, reference=run.study.arm(first))
        left_after = run.withdrawn.get(name, dropped.block if dropped else None)
        speed = math.exp(middle_of(ratios)) if ratios else None
        is_failed = name in failed
        no_effect = name in run.withdrawn and not is_failed
        shown.append(Racer(name, len(run.samples(arm)), speed, left_after, is_failed, no_effect, name in over))
    return shown


def _ranked(run: Run) -> list[str]:
    """Return the names of the arms: those that are left, those that were dropped, and those that failed."""
    ratios = race_ratios(run)
    left = list(standings(ratios)) if all(ratios.values()) else list(ratios)
    dropped = sorted(run.dropped, key=lambda name: -run.dropped[name].block)
    return [*left, *(name for name in dropped if name not in run.withdrawn), *run.withdrawn]
