"""Plan a race of candidates and the confirmation of its winner: how many blocks, and how long it all takes.

A race chooses which profile to measure. It has few short samples of several arms, and claims nothing. ``envkit bench``
then compares the winner with the baseline on fresh samples. The constants were chosen by simulated races
(docs/results/race.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from envkit.bench.arms import View
from envkit.bench.run import Run
from envkit.bench.study import REFERENCE_PROFILE, StoppingRule, Study
from envkit.stats.sequential import fewest_blocks

# The folder of a race's record, in that of its confirmation.
FOLDER = "race"
# A race takes at most that share of the time, if it can: the confirmation of its winner has the other part.
RACE_SHARE = 0.5
# No more profiles than these race.
MOST = 6
# Blocks before the first half leaves.
LEAST_BLOCKS, MOST_BLOCKS = 2, 6
# A sample times steps for so many seconds, or for START_SHARE of its start where that is longer; at least FEWEST_STEPS.
SAMPLE_S, START_SHARE, FEWEST_STEPS = 1.5, 0.25, 6
# A process of a race that hangs is stopped after so many seconds, or so many times what a sample takes.
TIMEOUT_S, TIMEOUT_SAMPLES = 60.0, 10.0
# Both sides of the confirmation are started once, unmeasured.
FIRST_STARTS = 2
# The fewest samples of a confirmation.
CONFIRMED_BY = 2 * fewest_blocks(1) + FIRST_STARTS


def halvings(arms: int, blocks: int, equal_samples: bool = True) -> tuple[int, ...]:
    """Return after which blocks the slower half leaves, until one arm is left: first after so many ``blocks``.

    Each later round has as many samples as the first one (Karnin, Koren and Somekh 2013), or as many blocks.
    """
    after, left = list[int](), arms
    while left > 1:
        after.append(sum(after[-1:]) + (blocks * arms // left if equal_samples else blocks))
        left -= left // 2
    return tuple(after)


def samples_of(arms: int, after: Sequence[int]) -> int:
    """Return how many samples a race takes, with halvings ``after`` these blocks."""
    samples, before = 0, 0
    for block in after:
        samples += arms * (block - before)
        before, arms = block, arms - arms // 2
    return samples


@dataclass(frozen=True)
class Plan:
    """A race and a confirmation. Times are in seconds."""

    arms: int  # that race, the first of the candidates; a single one is confirmed at once
    halvings: tuple[int, ...]
    sample_s: float  # of a whole process
    budget_s: float  # of both

    @property
    def race_s(self) -> float:
        """Return what the race alone takes."""
        return samples_of(self.arms, self.halvings) * self.sample_s

    @property
    def least_s(self) -> float:
        """Return what the race and the fewest blocks of a confirmation take."""
        return self.race_s + CONFIRMED_BY * self.sample_s

    @property
    def total_s(self) -> float:
        return max(self.budget_s, self.least_s)


def plan(candidates: int, sample_s: float, budget_s: float) -> Plan:
    """Return the longest race that takes at most RACE_SHARE of ``budget_s``, or the shortest one.

    So many ``candidates`` race, but no more than MOST, and a sample takes ``sample_s``.
    """
    arms = min(candidates, MOST)
    lengths = [halvings(arms, blocks) for blocks in range(MOST_BLOCKS, LEAST_BLOCKS - 1, -1)]
    lengths.append(halvings(arms, LEAST_BLOCKS, equal_samples=False))
    fitting = (after for after in lengths if samples_of(arms, after) * sample_s <= RACE_SHARE * budget_s)
    return Plan(arms, next(fitting, lengths[-1]), sample_s, budget_s)


def sample_steps(step_s: float, start_s: float, watched: int) -> int:
    """Return how many steps a sample times.

    A step takes ``step_s``, and a process ``start_s`` before its first one (seconds). No more steps than were
    ``watched``: the training may have no more.
    """
    seconds = max(SAMPLE_S, START_SHARE * start_s)
    return min(max(FEWEST_STEPS, math.ceil(seconds / step_s)), watched)


def race_of(base: Study, names: Sequence[str], race_plan: Plan) -> Study:
    """Return the race of the profiles ``names`` as a study. ``base`` has the command and the baseline's arm."""
    arms = tuple(replace(base.reference, name=name, profile=name) for name in names[: race_plan.arms])
    budget_s = max(RACE_SHARE * race_plan.total_s, race_plan.race_s)
    timeout_s = max(TIMEOUT_S, TIMEOUT_SAMPLES * race_plan.sample_s)
    rule = replace(base.stopping, budget_s=budget_s, timeout_s=timeout_s, halvings=race_plan.halvings)
    made = replace(base, title="advise-race", view=View.RACE, stopping=rule).with_arms(arms)
    return replace(made, contrasts=())


def left_to_confirm_s(run: Run) -> float:
    """Return how long a race leaves for the confirmation (seconds): at least the time of the fewest blocks."""
    sample_s = median(sample.worker_seconds for sample in run.samples())
    return max(run.study.stopping.budget_s / RACE_SHARE - run.spent_s, CONFIRMED_BY * sample_s)


def confirmation(race_study: Study, winner: str, budget_s: float) -> Study:
    """Return the study that compares the ``winner`` of a race with the baseline, on fresh samples."""
    arm = race_study.arm(winner)
    arms = (replace(arm, name=REFERENCE_PROFILE, profile=REFERENCE_PROFILE), arm)
    rule = StoppingRule(budget_s, open_ended=True, max_memory=race_study.stopping.max_memory)
    made = replace(race_study, title=f"advise-{winner}", view=View.EFFECTS, stopping=rule, seed=None)
    return made.with_arms(arms)
