"""Measure the search's choice again, on fresh samples, beside the baseline and the best shipped profile.

The best of many candidates in the search was lucky too, so its times in the search are too good to report. This run is
an ordinary one, with a record of its own, whose number of blocks is fixed before it begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from envkit.analysis.load import Load
from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import Arm, Contrast, Role, effects
from envkit.bench.run import Run
from envkit.bench.study import REFERENCE_PROFILE
from envkit.stats.interval import Speedup
from envkit.stats.sequential import at_end, fewest_blocks
from envkit.stats.verdict import Verdict
from envkit.tuning import trial_store
from envkit.tuning.events import Event, Trial, WarmUp

TUNED, SHIPPED, BASELINE = "tuned", "shipped", "baseline"
MOST_ARMS = 3  # baseline, shipped and tuned
MOST_BLOCKS = 60  # more than enough
# Where several nodes confirm, the fewest of each: how far its own blocks differ is to be seen.
LEAST_OF_NODE = 3
REFERENCE_KERNEL_S = 1.5  # about what the reference kernel takes, once in each block


@dataclass(frozen=True)
class Decision:
    """Who won, and against what."""

    best: str  # TUNED, SHIPPED or BASELINE
    tuned: Comparison | None
    shipped: Comparison | None
    versus: Speedup | None  # tuned against shipped
    same_losses: bool = True  # whether the best has the baseline's, but for rounding
    refused: tuple[str, ...] = ()  # the arms that were faster and could not win for their losses
    over_memory: tuple[str, ...] = ()  # and those that could not as their peak memory is above the limit

    @property
    def load(self) -> Load | None:
        """Return the load beside which alone the best is known to be faster."""
        won = {TUNED: self.tuned, SHIPPED: self.shipped}.get(self.best)
        return won.load if won is not None else None

    @property
    def recommended(self) -> str | None:
        """Return the best, or None where nothing is recommended as it was measured beside a load."""
        return None if self.load else self.best

    @property
    def is_better(self) -> bool:
        """Return whether a profile is recommended."""
        return self.recommended not in (BASELINE, None)


@dataclass(frozen=True)
class Size:
    """How long the run is."""

    blocks: int
    steps: int  # the timed ones of each sample
    takes_s: float


def contrasts(arms: Sequence[Arm]) -> tuple[Contrast, ...]:
    """Return the effects of all but the first, and the choice between tuned and shipped where both are there."""
    choice = [Contrast(arms[2].name, arms[1].name, Role.CHOICE)] if len(arms) == MOST_ARMS else []
    return (*effects(arms), *choice)


def least_blocks(arms: int, nodes: int = 1) -> int:
    """The fewest that can give every comparison an interval, on each of so many nodes."""
    alone = fewest_blocks(math.comb(arms, 2))
    return alone if nodes == 1 else max(LEAST_OF_NODE, math.ceil(alone / nodes))


def reserve_s(warm_up: WarmUp, arms: int, dearest_s: float = 0.0, nodes: int = 1) -> float:
    """Seconds to keep for the shortest confirmation that can conclude, by what the search's first trial took.

    One of the arms may take longer, as several ranks do, which start one after the other: ``dearest_s`` for a trial.
    """
    each = warm_up.worker_seconds
    of_all = each * (arms - 1) + max(each, dearest_s)
    return of_all + least_blocks(arms, nodes) * (of_all + REFERENCE_KERNEL_S)


def size(
    events: Sequence[Event], candidates: Sequence[int], left_s: float, trial_steps: int, steps: int, nodes: int = 1
) -> Size:
    """The run of ``candidates`` that fits into ``left_s`` seconds, by what their trials in the search took.

    Its samples have ``steps`` timed steps, or fewer if too few blocks would fit otherwise, but no fewer than a trial.
    One of several ``nodes`` may have tried none of them but the baseline.
    """
    arms = len(candidates)
    trials = [_trials_of(events, number) for number in candidates]
    trials = [of_one or trials[0] for of_one in trials]
    step_s = fmean(fmean(sum(event.step_s) for event in of_one) for of_one in trials) / trial_steps
    trial_s = fmean(fmean(event.worker_seconds for event in of_one) for of_one in trials)
    once_s, least = trial_s * arms, least_blocks(arms, nodes)  # each arm is warmed up, in no more than a trial's time
    sample_s = ((left_s - once_s) / least - REFERENCE_KERNEL_S) / arms  # so long a sample may take
    steps = max(trial_steps, min(steps, int(trial_steps + (sample_s - trial_s) / step_s)))
    block_s = (trial_s + step_s * (steps - trial_steps)) * arms + REFERENCE_KERNEL_S
    blocks = max(least, min(MOST_BLOCKS, int((left_s - once_s) / block_s)))
    return Size(blocks, steps, once_s + blocks * block_s)


def _trials_of(events: Sequence[Event], number: int) -> list[Trial | WarmUp]:
    """Return the trials of a candidate. The warm-up of the baseline, before any round, counts too."""
    return [
        event
        for event in events
        if (isinstance(event, Trial) and event.candidate == number)
        or (isinstance(event, WarmUp) and number == trial_store.BASELINE)
    ]


def arms(engine: str, tuned: str | None, shipped: str | None) -> tuple[Arm, ...]:
    """The arms of the run, by the names of the profiles; ``tuned`` is None where the choice is the shipped profile."""
    profiles = ((REFERENCE_PROFILE, REFERENCE_PROFILE), (shipped, shipped), (TUNED, tuned))
    return tuple(Arm(name, profile, engine) for name, profile in profiles if name is not None and profile is not None)


def decide(result: Result, run: Run, shipped: str | None, same_losses: bool) -> Decision:
    """Who won. The tuned profile must beat the shipped one by an interval, which otherwise is preferred, being known.

    With ``same_losses`` an arm whose losses differ from the baseline's by more than rounding can't win.
    """
    comparisons: Mapping[str, Comparison] = {comparison.arm: comparison for comparison in result.comparisons}
    of_tuned, of_shipped = comparisons.get(TUNED), comparisons.get(shipped or "")
    versus = None
    if of_tuned and of_shipped and of_tuned.speedup and of_shipped.speedup:  # both in effect, to the run's end
        versus = _versus(run, shipped or "")
    best = winner(_wins(of_tuned, same_losses), _wins(of_shipped, same_losses), versus)
    won = {TUNED: of_tuned, SHIPPED: of_shipped}.get(best)
    agree = won is None or won.losses is None or won.losses.agree
    faster = [
        comparison
        for comparison in (of_tuned, of_shipped)
        if comparison is not None and comparison.verdict == Verdict.FASTER
    ]
    over = tuple(comparison.arm for comparison in faster if comparison.over_memory is not None)
    lost = (comparison.arm for comparison in faster if not _wins(comparison, same_losses))
    refused = tuple(arm for arm in lost if arm not in over)
    return Decision(best, of_tuned, of_shipped, versus, agree, refused, over)


def winner(tuned: bool, shipped: bool, versus: Speedup | None) -> str:
    """The best, by whether the tuned and the shipped profile are faster than the baseline and one than the other."""
    if tuned and (not shipped or (versus is not None and versus.verdict == Verdict.FASTER)):
        return TUNED
    return SHIPPED if shipped else BASELINE


def _wins(comparison: Comparison | None, same_losses: bool) -> bool:
    if comparison is None or comparison.verdict != Verdict.FASTER or comparison.over_memory is not None:
        return False
    if comparison.losses is None or comparison.losses.agree:
        return True
    return not same_losses and math.isfinite(comparison.losses.largest_difference)


def _versus(run: Run, shipped: str) -> Speedup | None:
    """Tuned against shipped: the same blocks and the same share of the error rate."""
    study, fixed = run.study, run.design
    ratios = run.block_ratios(study.arm(TUNED), reference=study.arm(shipped))
    return at_end(fixed, ratios, study.stopping.margin, stopped_early=False) if fixed else None
