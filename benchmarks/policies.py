"""Ways to choose a profile, judged on the gallery: what ``envkit advise`` ends with, the model alone, and constants.

All ways are judged in the same simulated runs (``benchmarks.advise_runs``), by the true gains of each run. The regret
of a run is the best profile's gain over that of the chosen one. A profile whose losses differ from the baseline's is
never the best. To choose it gains nothing, as it can't be used.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy
from envkit.cli import racing

from benchmarks import page
from benchmarks.advise_runs import Replayed
from benchmarks.judged import NEAR, Training, is_supported
from benchmarks.regret import Mean, mean_of

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

# A race without errors among so many of the model's first profiles.
RACED = 3
CONSTANTS = ("jemalloc-retain-mkl", "mimalloc-retain")
# The aims, as speedups less 1, as a share of runs, and as a geometric mean.
REGRET, REGRET_BOUND, CLAIMS, ONE_PROFILE = 0.02, 0.05, 0.05, 1.40
# Up to so many seconds of a sample a run is to take no longer than the default budget.
SAMPLE_S = 4.0
COLUMNS = ("choice", "mean gain", "the best is faster by", "at most", "within 3% of it", "slower than the baseline")
PROFILES = ("profile", "mean gain", "surely faster", "surely slower", "losses differ", "a vendor's check")
TRAININGS = (
    "training", "race", "blocks of the confirmation", "ends most often with", "gains", "the best", "regret",
    "claims without a gain",
)  # fmt: skip

# Returns the profile that is chosen in each run; None is the baseline.
Choose = Callable[[Replayed], Sequence[str | None]]


@dataclass(frozen=True)
class Policy:
    """A way to choose, judged: one value for each training, as means over runs. Gains and regrets are logarithms."""

    label: str
    gains: Sequence[float]
    regrets: Sequence[float]
    near: Sequence[float]  # share of runs
    slower: Sequence[float]  # share of runs that choose a profile that is slower than the baseline

    @property
    def mean_gain(self) -> float:
        """The geometric mean of speedups."""
        return math.exp(fmean(self.gains))

    @property
    def regret(self) -> Mean:
        """The geometric mean of the best profile's speedup over the chosen one's, less 1, with its bound."""
        return ratio_less_1(mean_of(self.regrets))

    def row(self) -> list[str]:
        return [
            self.label, f"{self.mean_gain:.3f}", f"{self.regret.value:.1%}", bound_shown(self.regret),
            f"{fmean(self.near):.0%}", f"{fmean(self.slower):.1%}",
        ]  # fmt: skip


def ratio_less_1(mean: Mean) -> Mean:
    """Return the mean of logarithms as a ratio less 1."""
    return Mean(math.expm1(mean.value), None if mean.bound is None else math.expm1(mean.bound))


def bound_shown(mean: Mean) -> str:
    return "-" if mean.bound is None else f"{mean.bound:.1%}"


def judge(label: str, trainings: Sequence[Replayed], choose: Choose) -> Policy:
    """Judge a way to choose by all simulated runs."""
    gains, regrets, near, slower = [], [], [], []
    for replayed in trainings:
        usable = _usable(replayed)
        gained = numpy.array([
            usable[name][run] if name in usable else 0.0 for run, name in enumerate(choose(replayed))
        ])  # fmt: skip
        lost = _best(replayed) - gained
        gains.append(float(gained.mean()))
        regrets.append(float(lost.mean()))
        near.append(float((lost <= math.log1p(NEAR)).mean()))
        slower.append(float((gained < 0).mean()))
    return Policy(label, gains, regrets, near, slower)


def _usable(replayed: Replayed) -> dict[str | None, NDArray[float64]]:
    """Return the true log gains in each run of the profiles whose losses agree, by name."""
    agreeing = replayed.training.usable
    return {name: gains for name, gains in replayed.truths.items() if name in agreeing}


def _best(replayed: Replayed) -> NDArray[float64]:
    """Return the log gain of the best profile in each run; 0 if none is faster than the baseline."""
    best: NDArray[float64] = numpy.max([numpy.zeros(replayed.runs), *_usable(replayed).values()], axis=0)
    return best


# --- ways to choose ---


def of_advise(replayed: Replayed) -> Sequence[str | None]:
    """Choose what the simulated run of ``envkit advise`` ends with."""
    return [outcome.kept for outcome in replayed.outcomes]


def of_model(replayed: Replayed) -> Sequence[str | None]:
    """Choose the model's first profile, without a measurement."""
    advised = replayed.judgement.advised
    return [advised.profile if advised else None] * replayed.runs


def best_of_first(replayed: Replayed) -> Sequence[str | None]:
    """Choose the best of the model's first RACED profiles, as a race without errors does."""
    usable, expected = _usable(replayed), replayed.judgement.expected[:RACED]
    names = [None, *(each.profile for each in expected if each.profile in usable)]
    gains = [numpy.zeros(replayed.runs), *(usable[name] for name in names if name is not None)]
    return [names[place] for place in numpy.argmax(gains, axis=0)]


def always(name: str) -> Choose:
    """Choose the same profile for all trainings."""
    return lambda replayed: [name] * replayed.runs


def policies(trainings: Sequence[Replayed]) -> list[Policy]:
    """Judge all ways to choose, what ``envkit advise`` ends with first, and the best constants last.

    A constant must have been measured with all trainings.
    """
    common = [name for name in trainings[0].truths if all(name in each.truths for each in trainings)]
    constants = {name: judge(f"always {name}", trainings, always(name)) for name in common}
    made = [
        judge("`envkit advise`: what it ends with", trainings, of_advise),
        judge("the model's first, unmeasured", trainings, of_model),
        judge(f"the best of the model's first {RACED}", trainings, best_of_first),
        *(constants[name] for name in CONSTANTS if name in constants),
    ]
    if supported := [name for name in common if is_supported(name)]:
        first = max(supported, key=lambda name: constants[name].mean_gain)
        label = f"the best constant in hindsight without a vendor's check overridden: {first}"
        made.append(judge(label, trainings, always(first)))
    if common:
        first = max(common, key=lambda name: constants[name].mean_gain)
        made.append(judge(f"the best constant in hindsight: {first}", trainings, always(first)))
    return [*made, judge("the baseline", trainings, lambda replayed: [None] * replayed.runs)]


def best_constant(made: Sequence[Policy]) -> Policy | None:
    """Return the best of the constants; None if no profile was measured with all trainings."""
    return next((policy for policy in made if policy.label.startswith("the best constant in hindsight: ")), None)


# --- what is claimed ---


def false_claims(trainings: Sequence[Replayed]) -> Mean:
    """Return the share of runs without any gain that call a profile faster.

    The bound is the larger one of two: over trainings, and of that many independent runs (``page.proportion``).
    """
    claims = [[outcome.is_faster for outcome in each.without_gain] for each in trainings]
    of_trainings = mean_of([fmean(each) for each in claims])
    _, of_runs = page.proportion(sum(map(sum, claims)), sum(map(len, claims)))
    return Mean(of_trainings.value, max(of_runs, of_trainings.bound or 0.0))


def losses_differ(trainings: Sequence[Replayed]) -> float:
    """Return the share of runs that end with a profile whose losses differ."""
    return fmean(
        fmean(outcome.kept is not None and outcome.kept not in each.training.usable for outcome in each.outcomes)
        for each in trainings
    )


# --- one profile for all ---


def constant_gain(trainings: Sequence[Training], name: str) -> float:
    """Return the geometric mean of a profile's speedups over all trainings; 1 where its losses differ."""
    return statistics.geometric_mean(training.gained(name) for training in trainings)


def for_all(trainings: Sequence[Training]) -> list[str]:
    """Return the profiles that were measured with all trainings, the largest mean gain first."""
    common = [name for name in trainings[0].gains if all(name in each.gains for each in trainings)]
    return sorted(common, key=lambda name: -constant_gain(trainings, name))


def profile_row(trainings: Sequence[Training], name: str) -> list[str]:
    """Return the cells of a profile in the table of PROFILES."""
    gains = [training.gains[name] for training in trainings]
    counts = (sum(g.is_faster for g in gains), sum(g.is_slower for g in gains), sum(g.losses_differ for g in gains))
    vendor = "kept" if is_supported(name) else "overridden"
    return [name, f"{constant_gain(trainings, name):.3f}", *map(str, counts), vendor]


# --- the page ---


def training_row(replayed: Replayed) -> list[str]:
    """Return the cells of a training in the table of TRAININGS."""
    kept = [outcome.kept or "baseline" for outcome in replayed.outcomes]
    most = statistics.mode(kept)
    policy = judge("", [replayed], of_advise)
    best = math.exp(float(_best(replayed).mean()))
    blocks = statistics.median(outcome.blocks for outcome in replayed.outcomes)
    claims = fmean(outcome.is_faster for outcome in replayed.without_gain)
    name = replayed.training.name + (", published" if replayed.training.is_published else "")
    return [
        name, f"{len(replayed.racers)} for {replayed.plan.total_s:.0f} s", f"{blocks:.0f}",
        f"{most}: {kept.count(most) / len(kept):.0%}", f"{policy.mean_gain:.2f}", f"{best:.2f}",
        f"{math.expm1(policy.regrets[0]):.1%}", f"{claims:.1%}",
    ]  # fmt: skip


def parts(trainings: Sequence[Replayed]) -> list[str]:
    """Return the tables of one machine: all ways to choose, and each training."""
    made = policies(trainings)
    return [
        page.table(COLUMNS, [policy.row() for policy in made], 1),
        page.table(TRAININGS, [training_row(each) for each in trainings]),
    ]


def aims(trainings: Sequence[Replayed]) -> list[str]:
    """Return the aims of what ``envkit advise`` ends with on one machine, each with its figures."""
    made = policies(trainings)
    advise, constant, claims = made[0], best_constant(made), false_claims(trainings)
    slow, least = advise.regret, fmean(fmean(each.halves) for each in trainings)
    runs = sum(each.runs for each in trainings)
    lines = [
        f"the best profile is {slow.value:.1%} faster than what `envkit advise` ends with in the geometric mean, at "
        f"most {bound_shown(slow)} at 95% (the aim: {REGRET:.0%}, at most {REGRET_BOUND:.0%}): "
        f"{met(slow.value <= REGRET and slow.bound is not None and slow.bound <= REGRET_BOUND)}; "
        f"the lower figure is {math.expm1(least):.1%}"
    ]
    if constant is not None:
        lines.append(_beside(advise, constant))
    return [
        *lines,
        f"where no profile gains anything, {claims.value:.1%} of {runs:,} runs claim a gain, at most "
        f"{bound_shown(claims)} at 95% (the aim: at most {CLAIMS:.0%}): "
        f"{met(claims.bound is not None and claims.bound <= CLAIMS)}",
        f"`envkit advise` ends with a profile that is slower than the baseline in {fmean(advise.slower):.1%} of runs, "
        f"and with one whose losses differ in {losses_differ(trainings):.1%}",
        *_time(trainings),
    ]


def _time(trainings: Sequence[Replayed]) -> list[str]:
    """Return how long ``envkit advise`` plans to take, with the watching, if samples are as short as the aim says."""
    short = [each for each in trainings if each.plan.sample_s <= SAMPLE_S]
    if not short:
        least_s = min(each.plan.sample_s for each in trainings)
        return [f"a sample takes {least_s:.1f} s or more, so the aim of {racing.BUDGET_S:.0f} s does not apply"]
    longest_s = max(each.plan.total_s + each.watching_s for each in short)
    return [
        f"of {len(trainings)} trainings, {len(short)} have samples of {SAMPLE_S:.0f} s or less; the longest of their "
        f"runs is planned to take {longest_s:.0f} s (the aim: {racing.BUDGET_S:.0f} s): "
        f"{met(longest_s <= racing.BUDGET_S)}"
    ]


def _beside(advise: Policy, constant: Policy) -> str:
    """Return how what advise ends with compares with the best constant, training by training."""
    pairs = zip(advise.gains, constant.gains, strict=True)
    behind = mean_of([of_constant - of_advise for of_advise, of_constant in pairs])
    ratio = math.exp(-behind.value)
    least = "" if behind.bound is None else f" (at least {math.exp(-behind.bound):.3f} at 95%)"
    unsure = ", but not surely" if ratio > 1 and (behind.bound is None or behind.bound >= 0) else ""
    return (
        f"its mean gain is {advise.mean_gain:.3f}, that of {constant.label} {constant.mean_gain:.3f}: the ratio is "
        f"{ratio:.3f}{least} (the aim: above 1): {met(ratio > 1)}{unsure}"
    )


def aim_of_one_profile(trainings: Sequence[Training]) -> str:
    """Return whether one profile without a vendor's check overridden is good for all trainings."""
    supported = [name for name in for_all(trainings) if is_supported(name)]
    if not supported:
        return "no profile that overrides no vendor's check was measured with all trainings"
    gain = constant_gain(trainings, supported[0])
    return (
        f"one profile for all without a vendor's check overridden: {supported[0]}, {gain:.3f} in the geometric mean "
        f"of {len(trainings)} trainings (the aim: {ONE_PROFILE:.2f}): {met(gain >= ONE_PROFILE)}"
    )


def met(holds: bool) -> str:
    return "met" if holds else "missed"
