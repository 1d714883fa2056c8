"""Does a race of short samples choose a profile near the best, and what does its confirmation claim?

Races are simulated, and decide as real ones do: ``envkit.bench.decide`` says which arms leave, and when a race ends.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy
from envkit.bench.arms import Arm, View
from envkit.bench.decide import in_race, race_ratios
from envkit.bench.events import Dropped
from envkit.bench.race import LEAST_BLOCKS, halvings, samples_of
from envkit.bench.run import Run
from envkit.bench.study import StoppingRule, Study
from envkit.stats.interval import ERROR_RATE
from envkit.stats.selection import standings
from envkit.stats.sequential import at_end, design
from envkit.stats.verdict import Verdict

from benchmarks import page, script
from benchmarks.selection import NOISES, percent

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

RUNS = 1000
# What candidates gain, in the order in which they may stand anywhere.
GAINS: dict[str, tuple[float, ...]] = {
    "far apart": (1.6, 1.5, 1.4, 1.2, 1.05, 1.0),
    "close": (1.5, 1.47, 1.44, 1.41, 1.38, 1.35),
}
# Of one sample; a pair of them has 1.41 times as much.
DEVIATIONS = (0.08, 0.11, 0.15)
NEAR = 0.03
# Blocks of the confirmation where nothing helps, and how often it is simulated.
CONFIRMED, TESTS = 12, 4000

ABOUT = f"""Six candidates race in blocks of one sample of each. After the named blocks the slower half leaves.
*Near* is the share of races whose winner is within {NEAR:.0%} of the best. *Regret* is how much faster the best is
than the winner (mean). Races with the same number of samples take equally long. The rounds of 2, 6, 12 have equally
many samples, and those of 3, 6, 9 equally many blocks. With a single look the fastest wins there."""
ABOUT_FEWER = """The kit races up to six candidates. It takes the longest of its designs that leaves the confirmation as
much time as the race. The rounds have equally many samples, but not in the shortest design. Here candidates gain 1.6,
1.5, 1.4, 1.2, 1.05 and 1, or the first of these."""
ABOUT_CLAIMS = f"""No candidate gains anything here. *Fresh* confirms the winner by {CONFIRMED} blocks that come after
the race. *Of the race* tests the winner on the blocks that chose it, beside a baseline in each block. The share of
runs that call the winner faster must be at most {ERROR_RATE / 2:.1%}, half of the error rate. So the kit claims
nothing of a race, and confirms its winner on fresh samples."""
COLUMNS = ("candidates", "a sample's deviation", "looks after", "samples", "near", "regret")
COLUMNS_CLAIMS = ("noise", "fresh", "of the race")


@dataclass(frozen=True)
class Case:
    """Simulated races of one kind. ``deviation`` is that of a sample's log time."""

    gains: tuple[float, ...]
    halvings: tuple[int, ...]
    deviation: float
    noise: str = "normal"  # one of NOISES

    @cached_property
    def study(self) -> Study:
        names = [f"profile {number}" for number in range(len(self.gains))]
        study = Study("race", StoppingRule(1.0, halvings=self.halvings), view=View.RACE)
        return study.with_arms(Arm(name, name, "local") for name in names)


@dataclass
class Simulated:
    """A race in progress, as ``decide`` sees it. ``log_s`` has the log time of each arm in each block."""

    study: Study
    log_s: Mapping[str, NDArray[float64]]
    events: list[Dropped] = field(default_factory=list)
    blocks: int = 0
    spent_s: float = 0.0

    @property
    def racing(self) -> list[Arm]:
        return [arm for arm in self.study.arms if arm.name not in self.dropped]

    @property
    def dropped(self) -> dict[str, Dropped]:
        return {name: event for event in self.events for name in event.arms}

    def all(self, kind: type[Dropped]) -> list[Dropped]:
        return self.events

    def samples(self, *arms: Arm) -> list[object]:
        """Return nothing: no sample takes time or memory."""
        return []

    def block_ratios(self, arm: Arm, reference: Arm) -> list[float]:
        return list(self.log_s[reference.name][: self.blocks] - self.log_s[arm.name][: self.blocks])


def race(case: Case, random: Generator) -> tuple[int, NDArray[float64]]:
    """Simulate one race. Return the number of its winner, from 0, and the winner's log times, block by block."""
    study = case.study
    shape = (case.halvings[-1], len(case.gains))
    log_s = NOISES[case.noise](random, case.deviation, shape) - numpy.log(case.gains)
    simulated = Simulated(study, dict(zip((arm.name for arm in study.arms), log_s.T, strict=True)))
    decision: Dropped | str | None = None
    while not isinstance(decision, str):
        if isinstance(decision, Dropped):
            simulated.events.append(decision)
        else:
            simulated.blocks += 1
        decision = in_race(cast(Run, simulated), simulated.blocks)
    winner = next(iter(standings(race_ratios(cast(Run, simulated)))))
    chosen = [arm.name for arm in study.arms].index(winner)
    return chosen, log_s[: simulated.blocks, chosen]


@dataclass(frozen=True)
class Rates:
    """Shares and means of simulated races."""

    near: float
    regret: float


def rates(case: Case, runs: int) -> Rates:
    """Simulate so many races. Arms of the same gain are equally good."""
    random, best = numpy.random.default_rng(1), max(case.gains)
    gained = [case.gains[race(case, random)[0]] for _ in range(runs)]
    near = statistics.fmean(gain * (1 + NEAR) >= best for gain in gained)
    return Rates(near, statistics.fmean(best / gain - 1 for gain in gained))


def false_claims(noise: str, runs: int) -> tuple[float, float]:
    """Return how often a winner that gains nothing is called faster: by fresh blocks, and by those of the race."""
    random, gains = numpy.random.default_rng(2), (1.0,) * 6
    case = Case(gains, halvings(len(gains), LEAST_BLOCKS), DEVIATIONS[1], noise)
    fresh, raced = 0, 0
    for _ in range(runs):
        _, winner_s = race(case, random)
        baseline_s = NOISES[noise](random, case.deviation, winner_s.shape)
        confirmation = NOISES[noise](random, case.deviation, (CONFIRMED, 2))
        fresh += claims_faster(confirmation[:, 0] - confirmation[:, 1])
        raced += claims_faster(baseline_s - winner_s)
    return fresh / runs, raced / runs


def claims_faster(ratios: NDArray[float64]) -> bool:
    """Return whether blocks with these log ratios give the verdict that the arm is faster."""
    speedup = at_end(design(len(ratios), 1), list(ratios), 0.02, stopped_early=False)
    return speedup is not None and speedup.verdict is Verdict.FASTER


def designs() -> list[tuple[int, ...]]:
    """Return the designs to compare, for six candidates: few samples first."""
    return [(2, 3, 4), (3,), (1, 3, 6), (2, 4, 6), (4,), (3, 6, 9), (6,), (2, 6, 12)]


def _rows(cases: Sequence[tuple[str, Case]]) -> list[tuple[list[str], Case]]:
    """Return the first cells of each row of a table, and its case."""
    return [
        ([name, f"{case.deviation:.0%}", ", ".join(map(str, case.halvings)),
          str(samples_of(len(case.gains), case.halvings))], case)
        for name, case in cases
    ]  # fmt: skip


def _cases() -> list[tuple[str, Case]]:
    return [
        (name, Case(gains, looks, deviation))
        for name, gains in GAINS.items()
        for deviation in DEVIATIONS
        for looks in designs()
    ]


def _fewer() -> list[tuple[str, Case]]:
    """Return the designs of the kit, for each number of candidates: those of the first gains."""
    gains = GAINS["far apart"]
    return [
        (f"{number}", Case(gains[:number], looks, deviation))
        for number in (4, 5, 6)
        for deviation in DEVIATIONS
        for looks in (
            halvings(number, LEAST_BLOCKS, equal_samples=False),
            *(halvings(number, blocks) for blocks in (LEAST_BLOCKS, 3, 4)),
        )
    ]


def main() -> int:
    options = script.simulation_parser("race", __doc__, RUNS).parse_args()
    head = page.heading("Does a race choose well?", __doc__ or "")
    parts = [head, f"Each line is {options.runs:,} simulated races, and of claims {max(TESTS, options.runs):,}."]
    tables = {"Which design?": (ABOUT, _cases()), "The designs of the kit": (ABOUT_FEWER, _fewer())}
    with script.processes() as processes:
        of_tables = {
            title: [(first, processes.submit(rates, case, options.runs)) for first, case in _rows(cases)]
            for title, (_, cases) in tables.items()
        }
        of_claims = {
            noise: processes.submit(false_claims, noise, max(TESTS, options.runs)) for noise in ("normal", "bursts")
        }
        for title, lines in of_tables.items():
            rows = [[*first, f"{(of_case := future.result()).near:.0%}", f"{of_case.regret:.1%}"]
                    for first, future in lines]  # fmt: skip
            parts += [f"## {title}", tables[title][0], page.table(COLUMNS, rows, 3)]
        rows = [[noise, *map(percent, future.result())] for noise, future in of_claims.items()]
        parts += ["## What is claimed of a winner", ABOUT_CLAIMS, page.table(COLUMNS_CLAIMS, rows, 1)]
    page.write(options.page, parts)
    return 0


if __name__ == "__main__":
    sys.exit(script.run("race", main))
