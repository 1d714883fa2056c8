"""Does a run with many profiles choose the right one, and what do profiles gain that leave it early?

Runs are simulated, and decide as real ones do: ``envkit.bench.decide`` says when a run ends and which arms it drops.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy
from envkit.bench.arms import Arm
from envkit.bench.decide import precise_enough, slower_arms
from envkit.bench.run import Run
from envkit.bench.study import REFERENCE_PROFILE, StoppingRule, Study
from envkit.stats.interval import ERROR_RATE, ranks_outside
from envkit.stats.selection import is_slower, leader, with_best
from envkit.stats.sequential import PRECISION, Design, at_end, design, stretched
from envkit.stats.verdict import Verdict

from benchmarks import page, script

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

RUNS = 400
GAINS = (1.0, 1.02, 1.1, 1.25, 1.4, 1.45, 1.5)
# Where a run has two leaders, the fastest profile has a caution, and the fastest without one leads too. From 0.
CAUTIONED = frozenset({6})
# Where nothing helps, and where the best is hard to tell.
ALIKE = {
    "seven equal to the baseline": (1.0,) * 7,
    "two equal to the baseline": (1.0,) * 2,
    "two equally fast, five without effect": (1.5, 1.5, *(1.0,) * 5),
}
PLANNED = (20, 30)
# Besides, in runs that may stop early: about what 8 minutes have room for.
LONGEST = 45
# Of one sample; a pair of them has 1.41 times as much.
DEVIATIONS = (0.08, 0.11, 0.15)
# How the effect of a profile differs from block to block: not, by VARYING as a logarithm, or it doubles in bursts.
CONSTANT, VARIES, IN_BURSTS = "constant", "vary", "in bursts"
VARYING = 0.05
# The chance that a burst begins in a block, and that it goes on in the next: a fifth of the blocks, three at a time.
BEGINS, GOES_ON = 1 / 12, 2 / 3
# Pairs of blocks from which a pseudo-median is worked out, to about 0.1%.
PAIRS = 400_000
# A choice costs nothing that matters within this share of the best.
NEAR = 0.035
# By which rules arms are dropped, and how precise an interval has to be.
RULES = {"kept": (False, None), "dropped": (True, None)}
# Of the simulated false claims with a second baseline.
TESTS = 10_000

ABOUT = f"""Seven profiles gain {", ".join(f"{gain:g}" for gain in GAINS)}. A run has time for as many blocks of all
arms as the first column says, and each sample takes equally long. *Kept* measures all arms to the end
(`--keep-arms`). *Dropped* ends arms that are slower than the leader at a look. The half-width is that
of the interval of the profile with the highest speedup (median of runs). *Right* is the share of runs
in which that is the fastest profile, and *near* in which it is within {NEAR:.1%} of it. *May be best*
is the mean number of profiles that can't be told from the fastest. *Lost* is the share of runs in which
these lack the fastest profile, dropped or not. Where effects vary, the effect of a profile differs by
{VARYING:.0%} from block to block (standard deviation)."""
ABOUT_STOPS = f"""*Before* is the earlier rule: a run ends early only if all comparisons are decided, each with a
half-width of at most {PRECISION:.0%}. *Kept* (`--keep-arms`) allows a half-width of half of the gain if that is more.
*Dropped* ends once the verdict of the leader is decided with such a half-width. Besides, no other profile may be faster
than the leader by more than {PRECISION:.0%}, or a quarter of the leader's gain (both as logarithms). *Time used* is
the time until then, as a share of the budget."""

ABOUT_LEADERS = f"""The fastest profile has a caution here: it may change results, or overrides a vendor's check.
Reports recommend the fastest without a caution first, and the others without one are compared with it. So a run has two
leaders, and ends early once both are known. *Without cautions* are the same shares among profiles without one, of which
the fastest gains {max(gain for number, gain in enumerate(GAINS) if number not in CAUTIONED):g}."""

COLUMNS = (
    "blocks", "a sample's deviation", "arms", "half-width", "right", "near", "lost", "may be best", "time used",
)  # fmt: skip
COLUMNS_LEADERS = (
    "blocks", "a sample's deviation", "arms", "right", "near", "lost", "right without cautions",
    "near without cautions", "lost without cautions", "time used",
)  # fmt: skip
ABOUT_ALIKE = f"""*False claims* is the share of runs that call any profile without effect faster or slower: at most
{ERROR_RATE:.0%}. So is *lost*, of the first of several equally fast profiles. Each line has five times
as many runs, with time for {PLANNED[1]} blocks and a sample's deviation of {DEVIATIONS[1]:.0%}."""
COLUMNS_ALIKE = ("profiles", "noise", "arms", "false claims", "lost", "may be best")
COLUMNS_REJECTED = ("noise", "blocks", "one baseline", "mean of two")

REJECTED = """A second baseline in each block makes the baseline less noisy. It was rejected, as the table shows: the
share of tests at 5% that claim a difference although the arms are equal. *Skewed*: the noise of a sample is
exponential. *Bursts*: a tenth of the samples take 20% to 80% longer. The signed-rank test is exact
where both sides of a pair have the same noise. The mean of two samples has another noise than one
sample."""

Noise = Callable[["Generator", float, tuple[int, ...]], "NDArray[float64]"]


def _normal(random: Generator, deviation: float, shape: tuple[int, ...]) -> NDArray[float64]:
    return random.normal(0, deviation, shape)


def _skewed(random: Generator, deviation: float, shape: tuple[int, ...]) -> NDArray[float64]:
    return random.exponential(deviation, shape)


def _bursts(random: Generator, deviation: float, shape: tuple[int, ...]) -> NDArray[float64]:
    slow = numpy.where(random.random(shape) < 0.1, random.uniform(0.2, 0.8, shape), 0)
    return random.normal(0, 0.6 * deviation, shape) + slow


NOISES: dict[str, Noise] = {"normal": _normal, "skewed": _skewed, "bursts": _bursts}


def log_effects(effects: str, log_gains: NDArray[float64], blocks: int, random: Generator) -> NDArray[float64]:
    """Return the log speedup of each profile in each block (blocks x profiles); a burst doubles all of a block."""
    if effects == VARIES:
        return log_gains + random.normal(0, VARYING, (blocks, len(log_gains)))
    if effects == CONSTANT:
        return numpy.tile(log_gains, (blocks, 1))
    chances, is_burst = random.random(blocks), numpy.zeros(blocks, dtype=bool)
    for block, chance in enumerate(chances):
        before = is_burst[block - 1] if block else random.random() < BEGINS / (BEGINS + 1 - GOES_ON)
        is_burst[block] = chance < (GOES_ON if before else BEGINS)
    return log_gains * (1 + is_burst[:, None])


def pseudo_median(log_ratios: NDArray[float64], random: Generator) -> float:
    """Return the median of the means of two independent draws from these log ratios."""
    first, second = (random.choice(log_ratios, PAIRS) for _ in range(2))
    return float(numpy.median((first + second) / 2))


@dataclass(frozen=True)
class Case:
    """Simulated runs of one kind. ``deviation`` is that of a sample's log time."""

    gains: tuple[float, ...]
    planned: int
    deviation: float
    drops: bool
    noise: str = "normal"
    effects: str = CONSTANT
    precision: float | None = 0.0  # that of ``StoppingRule``; 0 never stops early
    cautioned: frozenset[int] = frozenset()  # the numbers of the profiles with a caution, from 0

    @cached_property
    def log_speedups(self) -> tuple[float, ...]:
        """Return what the intervals are about: the pseudo-median of each profile's log ratios."""
        log_gains, random = numpy.log(self.gains), numpy.random.default_rng(1)
        if self.effects != IN_BURSTS:
            return tuple(log_gains)  # log ratios are symmetric about it
        ratios = log_effects(self.effects, log_gains, PAIRS, random)
        noise = NOISES[self.noise](random, self.deviation, (PAIRS, 2))
        return tuple(pseudo_median(of_profile + noise[:, 0] - noise[:, 1], random) for of_profile in ratios.T)

    @cached_property
    def study(self) -> Study:
        names = (REFERENCE_PROFILE, *(f"profile {number}" for number in range(1, 1 + len(self.gains))))
        rule = StoppingRule(0.0, precision=self.precision, drop_arms=self.drops)
        return Study("simulated", rule).with_arms(Arm(name, name, "local") for name in names)


@dataclass
class Simulated:
    """A run in progress, as ``decide`` sees it. ``log_s`` has the log time of each arm in each block."""

    study: Study
    log_s: Mapping[str, NDArray[float64]]
    cautioned: frozenset[int] = frozenset()
    dropped: dict[str, int] = field(default_factory=dict)  # arms, and after how many blocks
    blocks: int = 0

    def is_supported(self, arm: Arm) -> bool:
        """Return whether a profile has no caution."""
        return self.study.compared.index(arm) not in self.cautioned

    def losses_differ(self, arm: Arm) -> bool:
        """Return False: simulated arms have times alone."""
        return False

    def block_ratios(self, arm: Arm, reference: Arm | None = None) -> list[float]:
        """Return the log ratios of the blocks that both arms have, as ``Run.block_ratios`` does."""
        reference = reference or self.study.reference
        blocks = min(self.blocks, *(self.dropped.get(side.name, self.blocks) for side in (arm, reference)))
        return list(self.log_s[reference.name][:blocks] - self.log_s[arm.name][:blocks])


@dataclass(frozen=True)
class Choice:
    """What a run says of the fastest of some profiles, by their numbers from 0."""

    chosen: int  # that with the highest speedup
    may_be_best: frozenset[int]


@dataclass(frozen=True)
class Outcome:
    """What one simulated run concludes."""

    half_width: float
    of_all: Choice
    of_supported: Choice  # of the profiles without a caution
    false_claim: bool  # a profile without effect is called faster or slower
    share: float  # of the time that there was
    covered: tuple[bool, ...]  # of each profile, whether its interval holds the truth
    found: bool  # the fastest profile is called faster


def run(case: Case, seed: int) -> Outcome:
    """Simulate one run."""
    random, study = numpy.random.default_rng(seed), case.study
    most, arms = case.planned * (1 + len(case.gains)) // 2 + 1, len(study.arms)
    log_s = NOISES[case.noise](random, case.deviation, (most, arms))
    log_s[:, 1:] -= log_effects(case.effects, numpy.log(case.gains), most, random)
    simulated = Simulated(study, dict(zip((arm.name for arm in study.arms), log_s.T, strict=True)), case.cautioned)
    fixed, samples, is_early = design(case.planned, len(case.gains)), 0, False
    while not is_early:
        look = next(look for look in fixed.looks if look > simulated.blocks)
        samples += (look - simulated.blocks) * (arms - len(simulated.dropped))
        simulated.blocks = look
        if look == fixed.looks[-1]:
            break
        is_early = precise_enough(cast(Run, simulated), fixed)
        if not is_early and case.drops and (slower := slower_arms(cast(Run, simulated), fixed)):
            simulated.dropped |= dict.fromkeys(slower, look)
            left = (case.planned * arms - samples) // (arms - len(simulated.dropped))
            fixed = stretched(fixed, look, max(fixed.planned, look + left))
            is_early = precise_enough(cast(Run, simulated), fixed)
    return _concluded(case, simulated, fixed, is_early, samples)


def _concluded(case: Case, simulated: Simulated, fixed: Design, is_early: bool, samples: int) -> Outcome:
    compared, margin = simulated.study.compared, simulated.study.stopping.margin
    ratios = {arm.name: simulated.block_ratios(arm) for arm in compared}
    speedups = {
        name: at_end(fixed, of_arm, margin, is_early or name in simulated.dropped) for name, of_arm in ratios.items()
    }
    left = [arm for arm in compared if arm.name not in simulated.dropped]
    of_all = _choice(simulated, fixed, left, is_early)
    of_supported = _choice(simulated, fixed, [arm for arm in left if simulated.is_supported(arm)], is_early)
    shown = speedups[compared[of_all.chosen].name]
    assert shown is not None, "there are enough blocks"
    claims = (
        gain == 1.0 and speedup is not None and not speedup.low <= 1 <= speedup.high
        for gain, speedup in zip(case.gains, speedups.values(), strict=True)
    )
    covered = (
        speedup is not None and speedup.low <= math.exp(truth) <= speedup.high
        for truth, speedup in zip(case.log_speedups, speedups.values(), strict=True)
    )
    of_fastest = speedups[compared[case.gains.index(max(case.gains))].name]
    return Outcome(
        half_width=shown.half_width,
        of_all=of_all,
        of_supported=of_supported,
        false_claim=any(claims),
        share=samples / (case.planned * len(simulated.study.arms)),
        covered=tuple(covered),
        found=of_fastest is not None and of_fastest.verdict is Verdict.FASTER,
    )


def _choice(simulated: Simulated, fixed: Design, arms: Sequence[Arm], is_early: bool) -> Choice:
    """Return the fastest of ``arms``, which were not dropped, and those that can't be told from it."""
    compared, margin = simulated.study.compared, simulated.study.stopping.margin
    best = simulated.study.arm(leader({arm.name: simulated.block_ratios(arm) for arm in arms}))
    shared = with_best(fixed, len(compared))
    near = [
        arm
        for arm in arms
        if arm == best or not is_slower(at_end(shared, simulated.block_ratios(arm, best), margin, is_early))
    ]
    return Choice(compared.index(best), frozenset(map(compared.index, near)))


@dataclass(frozen=True)
class Chances:
    """Shares of simulated runs: the fastest of some profiles is chosen, or one near it, or it is lost."""

    right: float
    near: float
    lost: float


def chances(case: Case, numbers: Sequence[int], choices: Sequence[Choice]) -> Chances:
    """Return the shares of ``choices`` among the profiles with these ``numbers``.

    The first of equally fast profiles counts as the fastest.
    """
    best = max(numbers, key=lambda number: case.gains[number])
    return Chances(
        right=statistics.fmean(choice.chosen == best for choice in choices),
        near=statistics.fmean(case.gains[choice.chosen] >= case.gains[best] / (1 + NEAR) for choice in choices),
        lost=statistics.fmean(best not in choice.may_be_best for choice in choices),
    )


@dataclass(frozen=True)
class Rates:
    """Means and shares of simulated runs."""

    half_width: float
    of_all: Chances
    of_supported: Chances  # of the profiles without a caution
    may_be_best: float
    false_claims: float
    share: float
    covered: float  # of all intervals
    all_covered: float  # runs in which each interval holds the truth
    found: float  # the fastest


def rates(case: Case, runs: int) -> Rates:
    """Simulate so many runs, with seeds of their own."""
    outcomes, numbers = [run(case, seed) for seed in range(runs)], range(len(case.gains))
    supported = [number for number in numbers if number not in case.cautioned]
    return Rates(
        half_width=statistics.median(outcome.half_width for outcome in outcomes),
        of_all=chances(case, numbers, [outcome.of_all for outcome in outcomes]),
        of_supported=chances(case, supported, [outcome.of_supported for outcome in outcomes]),
        may_be_best=statistics.fmean(len(outcome.of_all.may_be_best) for outcome in outcomes),
        false_claims=statistics.fmean(outcome.false_claim for outcome in outcomes),
        share=statistics.fmean(outcome.share for outcome in outcomes),
        covered=statistics.fmean(statistics.fmean(outcome.covered) for outcome in outcomes),
        all_covered=statistics.fmean(all(outcome.covered) for outcome in outcomes),
        found=statistics.fmean(outcome.found for outcome in outcomes),
    )


def false_claims(noise: str, blocks: int, second: bool, tests: int = TESTS) -> float:
    """Return the rate of false claims of tests at 5%, with a ``second`` baseline or one."""
    random, outside = numpy.random.default_rng(1), ranks_outside(blocks, ERROR_RATE)
    seconds = numpy.exp(NOISES[noise](random, DEVIATIONS[1], (tests, blocks, 3)))
    baseline = (seconds[..., 1] + seconds[..., 2]) / 2 if second else seconds[..., 1]
    ratios = numpy.log(baseline / seconds[..., 0])
    ranks = numpy.argsort(numpy.argsort(numpy.abs(ratios), axis=1), axis=1) + 1
    above, below = (ranks * (ratios > 0)).sum(axis=1), (ranks * (ratios < 0)).sum(axis=1)
    return float(((above < outside) | (below < outside)).mean())


def percent(share: float) -> str:
    return f"{share:.1%}"


def _row(first: Sequence[str], of_case: Rates) -> list[str]:
    figures = (of_case.half_width, of_case.of_all.right, of_case.of_all.near, of_case.of_all.lost)
    return [*first, *map(percent, figures), f"{of_case.may_be_best:.1f}", percent(of_case.share)]


def _row_leaders(first: Sequence[str], of_case: Rates) -> list[str]:
    of_leaders = [share for one in (of_case.of_all, of_case.of_supported) for share in (one.right, one.near, one.lost)]
    return [*first, *map(percent, (*of_leaders, of_case.share))]


def _saving(of_lines: Sequence[Rates]) -> str:
    """Return how long runs take until the leader is known, beside the rule before; each third line is by one rule."""
    before, today = ([of_line.share for of_line in of_lines[first::3]] for first in (0, 2))
    ratios = [later / earlier for earlier, later in zip(before, today, strict=True)]
    return (
        f"So the time until the leader is known is {statistics.median(ratios):.0%} of that by the rule before (median "
        f"of the {len(ratios)} kinds of runs; {min(ratios):.0%} to {max(ratios):.0%})."
    )


def _row_alike(first: Sequence[str], of_case: Rates) -> list[str]:
    return [*first, *map(percent, (of_case.false_claims, of_case.of_all.lost)), f"{of_case.may_be_best:.1f}"]


def _cases(
    effects: str,
    rules: Mapping[str, tuple[bool, float | None]],
    of_blocks: Sequence[int] = PLANNED,
    cautioned: frozenset[int] = frozenset(),
) -> list[tuple[list[str], Case]]:
    """Return the rows of a table: their first cells, and the runs. A rule drops arms or not, and has a precision."""
    return [
        (
            [str(planned), f"{deviation:.0%}", name],
            Case(GAINS, planned, deviation, drops, effects=effects, precision=precision, cautioned=cautioned),
        )
        for planned in of_blocks
        for deviation in DEVIATIONS
        for name, (drops, precision) in rules.items()
    ]


def _cases_alike() -> list[tuple[list[str], Case]]:
    """Return the rows of the table of wrong claims."""
    return [
        (
            [name, noise, "dropped" if drops else "kept"],
            Case(gains, PLANNED[1], DEVIATIONS[1], drops, noise, precision=None),
        )
        for name, gains in ALIKE.items()
        for noise in ("normal", "bursts")
        for drops in (False, True)
    ]


def main() -> int:
    options = script.simulation_parser("selection", __doc__, RUNS).parse_args()
    equal, stops = {"kept": (False, 0.0), "dropped": (True, 0.0)}, {"before": (False, PRECISION), **RULES}
    tables = {
        "Equal time": ("", _cases(CONSTANT, equal)),
        "Equal time, effects that vary": ("", _cases(VARIES, equal)),
        "Runs that stop as soon as they may": (ABOUT_STOPS, _cases(CONSTANT, stops, (*PLANNED, LONGEST))),
    }
    noises = [(noise, blocks) for noise in NOISES for blocks in (20, 45, 100)]
    head = page.heading("Which of many profiles is the fastest?", __doc__ or "")
    parts = [head, f"Each line is {options.runs:,} simulated runs.\n\n{ABOUT}"]
    with script.processes() as processes:
        of_tables = {
            title: [(first, processes.submit(rates, case, options.runs)) for first, case in cases]
            for title, (_, cases) in tables.items()
        }
        of_leaders = [
            (first, processes.submit(rates, case, options.runs))
            for first, case in _cases(CONSTANT, RULES, (*PLANNED, LONGEST), CAUTIONED)
        ]
        of_alike = [(first, processes.submit(rates, case, 5 * options.runs)) for first, case in _cases_alike()]
        of_second = [
            (noise, blocks, [processes.submit(false_claims, noise, blocks, second) for second in (False, True)])
            for noise, blocks in noises
        ]
        for title, lines in of_tables.items():
            rows, about = [_row(first, future.result()) for first, future in lines], tables[title][0]
            parts += [f"## {title}", *([about] if about else []), page.table(COLUMNS, rows, 3)]
            parts += [_saving([future.result() for _, future in lines])] if about else []
        rows = [_row_leaders(first, future.result()) for first, future in of_leaders]
        parts += ["## Two leaders", ABOUT_LEADERS, page.table(COLUMNS_LEADERS, rows, 3)]
        rows = [_row_alike(first, future.result()) for first, future in of_alike]
        parts += ["## Profiles that are alike", ABOUT_ALIKE, page.table(COLUMNS_ALIKE, rows, 3)]
        rows = [[noise, str(blocks), *(percent(one.result()) for one in pair)] for noise, blocks, pair in of_second]
        parts += ["## A second baseline, rejected", REJECTED, page.table(COLUMNS_REJECTED, rows, 1)]
    page.write(options.page, parts)
    return 0


if __name__ == "__main__":
    sys.exit(script.run("selection", main))
