"""Simulate whole runs of ``envkit advise`` on a training of the gallery, by the samples that were recorded of it.

A simulated run goes the way of a real one. ``envkit.advice.candidates`` chooses what races, by fits that the training
taught nothing. ``envkit.bench.race`` plans the race and its confirmation, ``envkit.bench.decide`` drops arms and ends
runs, and ``envkit.analysis`` and ``envkit.report`` conclude. Only the seconds of samples are drawn.

Each run has its own truth: the gains in blocks that are drawn with replacement (``regret.draws_of_blocks``). So the
error of the recorded gains is carried. A sample is its profile's true gain with the noise of a recorded block. Whole
blocks are drawn, because samples of a block resemble each other. The race then never sees its truth.

Drawn truths differ more than true gains do, so that the regret is rather too large. Two other ways were simulated for
comparison. In these simulations four of eight profiles race over five blocks. Blocks had a noise of 3% or 7%. There
were 9 or 16 blocks, and true gains differed by 0, 1, 3 or 8% (standard deviation). Drawn truths made the regret too
large by at most 0.9 points at 3% noise, and 2.2 at 7%, where all profiles are equal. With differences of 3% and more
that was 0.1 and 0.4. Halves of the blocks, one for the truth and one for the race, made it too large by up to 2.0 and
4.7 points: the best of noisier gains is luckier. Where the first half names the best, too, the second one is no longer
lucky. Then the regret was too small, by at most 0.5 and 1.0 points: that is the lower figure. Races about the mean of
all blocks, which is then also the truth, gave at most 0.4 points less than drawn truths. They carry no error of that
mean.

References:
  B. Efron, R. J. Tibshirani: An Introduction to the Bootstrap (1993), chapters 6 and 8.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy
from envkit.advice.candidates import candidates
from envkit.analysis.intervals import Intervals
from envkit.analysis.race import racers
from envkit.analysis.result import Comparison
from envkit.bench import race
from envkit.bench.arms import Arm, Role
from envkit.bench.decide import after_blocks
from envkit.bench.events import End, Timed, WarmUp
from envkit.bench.race import Plan
from envkit.bench.run import Run
from envkit.bench.study import REFERENCE_PROFILE, StoppingRule, Study
from envkit.cli import racing
from envkit.report.advice import is_worth_it
from envkit.stats.interval import middle_of
from envkit.stats.verdict import Verdict

from benchmarks import regret, simulated
from benchmarks.judged import Judged, Timing, Training

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

# Draws the log seconds of each arm in a block, by the arm's name.
Block = Callable[[], Mapping[str, float]]


@dataclass(frozen=True)
class Outcome:
    """The end of one run of ``envkit advise``."""

    winner: str  # of the race
    is_faster: bool  # the confirmation calls it faster
    recommended: bool  # the report's last lines start the training under it
    blocks: int  # of the confirmation

    @property
    def kept(self) -> str | None:
        """The profile that the run ends with; None is the baseline."""
        return self.winner if self.recommended else None


@dataclass(frozen=True)
class Replayed:
    """The simulated runs on one training: each with its truth, and as many in which no profile gains anything."""

    judgement: Judged
    racers: Sequence[str]  # the profiles that race
    plan: Plan
    truths: Mapping[str, NDArray[float64]]  # the log gain of each profile in each run
    outcomes: Sequence[Outcome]
    without_gain: Sequence[Outcome]  # each arm has the baseline's samples
    halves: Sequence[float]  # the log regret of each run whose truth is another half of the blocks than the race's

    @property
    def training(self) -> Training:
        return self.judgement.training

    @property
    def runs(self) -> int:
        return len(self.outcomes)

    @property
    def watching_s(self) -> float:
        """The seconds that the watching takes before the race."""
        timing = self.training.timing
        return timing.watching_s if timing else 0.0


def is_sampled(judgement: Judged) -> bool:
    """Return whether the samples of a training were kept, with those of a profile that may race."""
    return judgement.training.timing is not None and bool(_measured(judgement).expected)


def replayed(judgement: Judged, runs: int) -> Replayed:
    """Simulate so many runs on a training whose samples were kept, and as many without any gain."""
    judgement, training = _measured(judgement), judgement.training
    assert training.timing is not None, "its samples were kept"
    names = candidates(judgement.expected, (), (), lambda name: name in training.blocks)
    plan = planned(training.timing, len(names))
    truths = regret.draws_of_blocks(training.blocks, training.name, runs)
    random, noise = regret.generator(f"{training.name}: race"), _noise(training)
    outcomes = []
    for number in range(runs):
        truth = {name: float(gains[number]) for name, gains in truths.items()}
        outcomes.append(advised(names, plan, _about(truth, noise, random)))
    alike = _alike(training.baseline_s, names, random)
    without_gain = [advised(names, plan, alike) for _ in range(runs)]
    halves = [_by_halves(training, names, plan, noise, random) for _ in range(runs)]
    return Replayed(judgement, names[: plan.arms], plan, truths, outcomes, without_gain, halves)


def _by_halves(
    training: Training,
    names: Sequence[str],
    plan: Plan,
    noise: Mapping[str, NDArray[float64]],
    random: Generator,
) -> float:
    """Simulate a run by half of the blocks, and return its log regret by the others: how far it is behind their choice.

    The profile that is best by the first half is compared with the one that the run ends with. Neither has seen the
    other half, so that both gains there are unbiased. The truly best profile gains as much or more.
    """
    blocks = random.permutation(len(training.baseline_s))
    first, second = (
        {name: middle_of([ratios[block] for block in half]) for name, ratios in training.blocks.items()}
        for half in (blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :])
    )
    kept = advised(names, plan, _about(first, noise, random)).kept
    usable = [name for name in training.blocks if name in training.usable]
    best = max(usable, key=lambda name: first[name], default=None)
    best_gain = second[best] if best is not None and first[best] > 0 else 0.0
    return best_gain - (second[kept] if kept in usable and kept is not None else 0.0)


def _measured(judgement: Judged) -> Judged:
    """Return the judgement with those profiles alone that were measured in all blocks of its training."""
    kept = judgement.training.blocks
    return replace(judgement, expected=[each for each in judgement.expected if each.profile in kept])


def planned(timing: Timing, number: int) -> Plan:
    """Return the plan of a race of so many candidates, as ``envkit advise`` makes it without ``--budget``."""
    steps = race.sample_steps(timing.step_s, timing.start_s, timing.watched_steps)
    sample_s = timing.start_s + steps * timing.step_s
    return racing.planned(number, sample_s, timing.watching_s, None)


def advised(names: Sequence[str], plan: Plan, block: Block) -> Outcome:
    """Simulate the race of profiles and the confirmation of its winner, with the samples that ``block`` draws."""
    alone = Study("advise", StoppingRule(racing.BUDGET_S)).with_arms([_arm(REFERENCE_PROFILE)])
    study, winner, left_s = race.race_of(alone, names, plan), names[0], plan.total_s
    if len(study.arms) > 1:
        raced = _ended(study, plan.sample_s, block)
        winner, left_s = racers(raced)[0].arm, race.left_to_confirm_s(raced)
    confirmed = _ended(race.confirmation(study, winner, left_s), plan.sample_s, block)
    arm = confirmed.study.arm(winner)
    speedup = Intervals(confirmed, {REFERENCE_PROFILE, winner}).of(arm, Role.EFFECT)
    assert speedup is not None, "a confirmation goes on until it has an interval"
    comparison = Comparison(winner, speedup.verdict, speedup)
    is_faster = speedup.verdict == Verdict.FASTER
    return Outcome(winner, is_faster, is_worth_it(comparison), speedup.blocks)


def _arm(name: str) -> Arm:
    return Arm(name, name, "local")


def _ended(study: Study, sample_s: float, block: Block) -> Run:
    """Return a run that took its samples from ``block``, each in ``sample_s`` seconds, until it was decided to end."""
    warm_ups = () if study.is_race else tuple(WarmUp(arm=arm.name, worker_seconds=sample_s) for arm in study.arms)
    run = Run(study, warm_ups)
    for blocks in itertools.count(1):
        log_s = block()
        samples = (
            simulated.sample(blocks - 1, arm.name, [math.exp(log_s[arm.name])], sample_s)
            for arm in run.arms_of(blocks - 1)
        )
        run = Run(study, (*run.events, *samples))
        while isinstance(decision := after_blocks(run, blocks), Timed):
            run = Run(study, (*run.events, decision))
        if decision is not None:
            return Run(study, (*run.events, End(reason=decision)))
    raise AssertionError("blocks are endless")


def _noise(training: Training) -> dict[str, NDArray[float64]]:
    """Return how far each block's log gains are from their centre, by profile.

    Deviations from a centre of few blocks are too small by sqrt(1 - 1/n), which is made good.
    """
    noise = {}
    for name, ratios in training.blocks.items():
        number = len(ratios)
        scale = math.sqrt(number / max(1, number - 1))
        noise[name] = scale * (numpy.asarray(ratios, dtype=float) - middle_of(ratios))
    return noise


def _about(truth: Mapping[str, float], noise: Mapping[str, NDArray[float64]], random: Generator) -> Block:
    """Draw blocks with these true log gains, each with the noise of a whole recorded block.

    The noise is that of gains, so that the baseline has its own in those of all others.
    """
    number = len(next(iter(noise.values())))

    def block() -> dict[str, float]:
        drawn = int(random.integers(number))
        gains = {name: gain + float(noise[name][drawn]) for name, gain in truth.items()}
        return {REFERENCE_PROFILE: 0.0, **{name: -gain for name, gain in gains.items()}}

    return block


def _alike(baseline_s: Sequence[float], names: Sequence[str], random: Generator) -> Block:
    """Draw blocks of the baseline against itself: each arm has another of its recorded samples."""
    log_s, arms = numpy.log(numpy.asarray(baseline_s, dtype=float)), (REFERENCE_PROFILE, *names)

    def block() -> dict[str, float]:
        drawn = random.choice(log_s, len(arms), replace=len(log_s) < len(arms))
        return dict(zip(arms, map(float, drawn), strict=True))

    return block
