"""How often the interval and the verdict are right, on simulated runs whose truth is known.

Each simulated run goes the way of a real one: events of samples with their steps' times, blocks in the plan's random
order, looks as in a real run, and the interval and verdict that a report would give.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy
from envkit.bench.arms import Arm
from envkit.bench.decide import precise_enough
from envkit.bench.events import Sample
from envkit.bench.run import Run
from envkit.bench.study import MARGIN, StoppingRule, Study, WorkloadSpec
from envkit.cli.commands.plan import BLOCKS as PILOT_BLOCKS
from envkit.common import codec
from envkit.stats.bootstrap import bootstrap
from envkit.stats.interval import ERROR_RATE, Speedup
from envkit.stats.power import POWER, blocks_needed, interval_scale
from envkit.stats.sequential import at_end, design
from envkit.stats.verdict import Verdict

from benchmarks import page, script, selection
from benchmarks.selection import CONSTANT, IN_BURSTS, VARIES, VARYING, Case, log_effects, percent, pseudo_median

RUNS = 2000
PLANNED = (8, 13, 45)  # a short run, one on a slow machine, and about what the usual budget has room for
EFFECTS = (0.0, 0.01, 0.02, 0.05, 0.20)
STEPS = 40
STEP_S = 0.025
COVERAGE = ("noise", "planted", "covers", "claimed", "wrongly excluded", "bootstrap covers", "blocks used")
# Noises and effects that differ from block to block; one that is 0 has no bursts.
EFFECTS_VARY = {VARIES: (0.0, 0.05, 0.20), IN_BURSTS: (0.05, 0.20)}
VARY_BESIDE, VARY_PLANNED = ("independent", "bursts", "processes"), (13, 45)
# Of seven profiles: what each gains, by what the page calls them.
SEVEN = {
    "none gains": (1.0,) * 7,
    **{f"one gains {gain - 1:.0%}": (gain, *(1.0,) * 6) for gain in (1.05, 1.1, 1.2)},
    "0% to 50%": selection.GAINS,
}
SEVEN_PLANNED, SEVEN_DEVIATION = 30, 0.11
VARY_COLUMNS = (
    "noise", "effects", "median effect", "pseudo-median", "pseudo-median covered", "median effect covered", "claimed",
    "blocks used",
)  # fmt: skip
SEVEN_COLUMNS = (
    "profiles", "effects", "noise", "arms", "each covered", "all covered", "false claims", "fastest found", "lost",
    "time used",
)  # fmt: skip
# Standard deviation of what differs between two processes.
BETWEEN = 0.03
# What plans were made for; the finest only where it does not take thousands of blocks.
TO_FIND = {"quiet": (0.01,), "independent": (0.01, 0.02, 0.05)}
TO_FIND_IN_OTHERS = (0.02, 0.05)

ABOUT = """Noise comes in time slots and hits whoever runs then: *quiet* (0.7% between processes, 3% between steps),
*independent* (3% between processes, 10% between steps), *heavy tails* (Student's t with 3 degrees of freedom between
processes), *correlated steps* (0.9 from one to the next), *drift* (30% up and down again within 60 samples, and
wandering), *bursts* (a neighbour that comes and goes and slows by 20% to 80%), *processes* (0 to 25% between
processes, by how their memory came to lie, with steps, drift and bursts on top). "Claimed" is the share of verdicts
"faster" or "slower": the rate of false ones where 0% was planted, else the power. "Wrongly excluded" is the share of
verdicts "no difference larger than 2%" where more was planted. "Bootstrap covers" is about the interval from resampling
blocks and steps, which no verdict uses. Lines of one kind of noise have the same noise, so their shares go up and down
together."""

ABOUT_VARYING = f"""The effect of a real profile need not be the same in each block. A report estimates the
pseudo-median of the blocks' ratios: half of the means of two blocks' log ratios lie below it. If the blocks' effects
are symmetric about their median, it is that median. *Vary*: effects differ by {VARYING:.0%} (standard deviation, as a
logarithm). *In bursts*: a fifth of the blocks, about three at a time, have twice the effect (as a logarithm). The
pseudo-median then lies between the median effect and the mean one, the nearer to the mean the more noise there is.
Neighbouring blocks then have like effects, so that they tell less than independent ones. "Covered" is the share of
intervals that hold the figure."""
ABOUT_SEVEN = f"""Runs of seven profiles and the baseline, with time for {SEVEN_PLANNED} blocks of all. The noise of a
sample is {SEVEN_DEVIATION:.0%} (*normal*), or a tenth of the samples take 20% to 80% longer (*bursts*). *Dropped* is
the default: profiles leave at looks, and a run ends once its leader is known. *Kept* is `--keep-arms`. "Each covered"
is the share of all intervals that hold the pseudo-median, "all covered" that of runs in which all seven do. "False
claims" is the share of runs that call any profile without effect faster or slower: at most 5% are promised, and that
95% of runs cover all. Effects in bursts break the last promise. "Fastest found" is the share of runs that call the
fastest profile faster. "Lost" is that of runs
whose report says that the fastest profile is not among the best. Where none gains, the first counts as the fastest."""

Random = Any  # numpy's Generator
# The slowdowns of the steps in consecutive samples (samples x steps), whoever runs in them.
Noise = Callable[[Random, int], Any]


def _independent(random: Random, samples: int) -> Any:
    return numpy.exp(random.normal(0, 0.1, (samples, STEPS)) + random.normal(0, BETWEEN, (samples, 1)))


def _quiet(random: Random, samples: int) -> Any:
    return numpy.exp(random.normal(0, 0.03, (samples, STEPS)) + random.normal(0, 0.007, (samples, 1)))


def _heavy_tails(random: Random, samples: int) -> Any:
    return _independent(random, samples) * numpy.exp(BETWEEN * random.standard_t(3, (samples, 1)))


def _correlated_steps(random: Random, samples: int) -> Any:
    noise = random.normal(0, 0.1, (samples, STEPS))
    for step in range(1, STEPS):
        noise[:, step] = 0.9 * noise[:, step - 1] + math.sqrt(1 - 0.9**2) * noise[:, step]
    return numpy.exp(noise + random.normal(0, BETWEEN, (samples, 1)))


def _drift(random: Random, samples: int) -> Any:
    """The machine gets slower by 30% within 30 samples, and faster again in the next 30, and wanders besides."""
    there_and_back = 0.3 * numpy.abs((numpy.arange(samples) + 30) % 60 - 30) / 30
    wandering = numpy.cumsum(random.normal(0, 0.01, samples))
    return _independent(random, samples) * numpy.exp(there_and_back + wandering)[:, None]


def _bursts(random: Random, samples: int) -> Any:
    """A neighbour that comes (on average every 8 samples), stays for 3, and slows by 20% to 80%."""
    slow = numpy.zeros((samples, 1))
    busy = False
    for sample in range(samples):
        busy = random.random() > 1 / 3 if busy else random.random() < 1 / 8
        slow[sample] = random.uniform(0.2, 0.8) if busy else 0
    return _independent(random, samples) * (1 + slow)


def _processes(random: Random, samples: int) -> Any:
    """As measured on a shared machine (docs/statistics.md): a process draws how many pages its steps fault in,
    which makes them up to 25% slower; single steps, drift and bursts come on top."""
    drawn = random.choice([0.0, 0.05, 0.10, 0.25], (samples, 1), p=[0.2, 0.35, 0.25, 0.2])
    burst = numpy.where(random.random((samples, 1)) < 0.05, random.uniform(0.2, 0.8, (samples, 1)), 0)
    wandering = numpy.cumsum(random.normal(0, 0.01, samples))[:, None]
    steps = random.normal(0, 0.1, (samples, STEPS))
    return numpy.exp(steps + wandering) * (1 + drawn) * (1 + burst)


NOISES: dict[str, Noise] = {
    "quiet": _quiet, "independent": _independent, "heavy tails": _heavy_tails, "correlated steps": _correlated_steps,
    "drift": _drift, "bursts": _bursts, "processes": _processes,
}  # fmt: skip


@dataclass(frozen=True)
class Rates:
    """Shares of runs: intervals that cover the truth, and verdicts "faster" and "slower"."""

    runs: int
    covered: float
    claimed: float
    excluded: float
    blocks: float
    bootstrap_covered: float | None


def _plan(seed: int, margin: float = MARGIN) -> Study:
    arms = (Arm("baseline", "baseline", "local"), Arm("profile", "profile", "local"))
    training = {"cnn": WorkloadSpec(0, STEPS)}
    stopping = StoppingRule(budget_s=240.0, blocks=0, margin=margin, timeout_s=300.0)
    return Study("simulated", stopping, workloads=training, data="synthetic", seed=seed).with_arms(arms)


def _slowdowns(noise: Noise, seed: int, blocks: int) -> Any:
    """The seconds of each step, where the profile does nothing (samples x steps); a block has two samples."""
    return STEP_S * noise(numpy.random.default_rng(seed), 2 * blocks)


# Lines of one kind of noise have the same noise and the same orders, and are worked out one after the other.
_kept_slowdowns = lru_cache(maxsize=RUNS)(_slowdowns)


@lru_cache(maxsize=RUNS * max(PLANNED))
def _order(seed: int, block: int) -> tuple[Arm, ...]:
    return tuple(_plan(seed).order(block))


def _blocks(slowdowns: Any, speedups: Sequence[float], study: Study) -> Iterator[list[Sample]]:
    """The events of each block. ``speedups`` are those of the profile in each block."""
    (profile,) = study.compared
    for block, speedup in enumerate(speedups):
        events = []
        for slot, arm in enumerate(_order(study.seed, block)):
            times = slowdowns[2 * block + slot] / (speedup if arm.name == profile.name else 1)
            events.append(sample(block, arm.name, times.tolist()))
        yield events


def sample(block: int, arm: str, step_s: list[float], worker_seconds: float = 0.0) -> Sample:
    """Return the event of a sample with these steps (seconds), whose whole worker took ``worker_seconds``."""
    nothing = {"warmup_step_s": [], "losses": [], "images_per_step": None, "evidence": {}, "digests": {}, "checks": []}
    usage = {"user_s": 0.0, "system_s": 0.0, "minor_faults": 0}
    measured = {"block": block, "arm": arm, "seconds": sum(step_s), "step_s": step_s, "usage": usage}
    measured["worker_seconds"] = worker_seconds
    return codec.parse({"event": "sample", **measured, **nothing, "peak_memory_bytes": 0}, Sample)


def _speedups(effect: float, seed: int, blocks: int, effects: str) -> list[float]:
    """Return how much faster the profile is in each block: by ``effect``, which is constant or not."""
    chances = numpy.random.default_rng([seed, 1])  # others than those of the noise
    drawn = log_effects(effects, numpy.array([math.log1p(effect)]), blocks, chances)
    return numpy.exp(drawn[:, 0]).tolist()


def run(
    noise: Noise, effect: float, seed: int, planned: int, margin: float = MARGIN, effects: str = CONSTANT
) -> tuple[Speedup, Run]:
    """What a run of at most ``planned`` blocks reports, ended as the real one would be, and that run."""
    study = _plan(seed, margin)
    fixed = design(planned, 1)
    simulated = Run(study, ())
    stopped = False
    slowdowns = (_kept_slowdowns if planned in PLANNED else _slowdowns)(noise, seed, planned)
    speedups = _speedups(effect, seed, planned, effects)
    for number, block in enumerate(_blocks(slowdowns, speedups, study), start=1):
        simulated = Run(study, (*simulated.events, *block))
        stopped = number in fixed.looks[:-1] and precise_enough(simulated, fixed)
        if stopped:
            break
    verdict = at_end(fixed, simulated.block_ratios(study.compared[0]), study.stopping.margin, stopped)
    assert verdict is not None
    return verdict, simulated


def rates(noise: Noise, effect: float, runs: int, planned: int, with_bootstrap: bool = False) -> Rates:
    """Of ``runs`` runs with seeds of their own. The bootstrap's coverage takes most of the time, where it is wanted."""
    truth = 1 + effect
    outcomes = [run(noise, effect, seed, planned) for seed in range(runs)]
    verdicts = [verdict for verdict, _ in outcomes]
    by_bootstrap = [_bootstrap_covers(simulated, truth) for _, simulated in outcomes] if with_bootstrap else None
    return Rates(
        runs,
        covered=statistics.fmean(verdict.low <= truth <= verdict.high for verdict in verdicts),
        claimed=statistics.fmean(verdict.verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in verdicts),
        excluded=statistics.fmean(effect > MARGIN and verdict.verdict == Verdict.EQUIVALENT for verdict in verdicts),
        blocks=statistics.fmean(verdict.blocks for verdict in verdicts),
        bootstrap_covered=statistics.fmean(by_bootstrap) if by_bootstrap else None,
    )


def _bootstrap_covers(simulated: Run, truth: float) -> bool:
    interval = bootstrap(*(simulated.timed_steps(arm) for arm in _plan(0).arms))
    return interval is not None and interval.low <= truth <= interval.high


def power(noise: Noise, difference: float, runs: int) -> tuple[float, float]:
    """The share of runs that find ``difference`` with the blocks that a plan named, and the median of these blocks.

    Each run's number of blocks comes from a pilot of its own, as ``envkit plan`` does it.
    """
    detected = []
    named = []
    for seed in range(runs):
        study = _plan(seed)
        drawn = _slowdowns(noise, 10**6 + seed, PILOT_BLOCKS)
        speedups = [1 + difference] * PILOT_BLOCKS
        pilot = Run(study, tuple(sample for block in _blocks(drawn, speedups, study) for sample in block))
        scale = interval_scale(pilot.block_ratios(study.compared[0])) or 0.0
        named.append(blocks_needed(scale, PILOT_BLOCKS, difference))
        detected.append(run(noise, difference, seed, named[-1], min(MARGIN, difference))[0].verdict == Verdict.FASTER)
    return sum(detected) / runs, statistics.median(named)


def _pseudo_median(noise: Noise, effect: float, planned: int, effects: str, runs: int) -> float:
    """Return the pseudo-median of the blocks' ratios of so many runs that go on to the end."""
    if effects != IN_BURSTS:
        return 1 + effect  # log ratios are symmetric about it
    log_ratios = []
    for seed in range(runs):
        step_s = numpy.log(_kept_slowdowns(noise, seed, planned).mean(axis=1)).reshape(planned, 2)
        log_ratios.append(numpy.log(_speedups(effect, seed, planned, effects)) + step_s[:, 0] - step_s[:, 1])
    return math.exp(pseudo_median(numpy.concatenate(log_ratios), numpy.random.default_rng(1)))


def _varying(planned: int, name: str, effects: str, runs: int) -> list[list[str]]:
    """Return the rows of one kind of noise and of effects that differ from block to block."""
    rows, noise = [], NOISES[name]
    for effect in EFFECTS_VARY[effects]:
        truth = _pseudo_median(noise, effect, planned, effects, runs)
        reported = [run(noise, effect, seed, planned, effects=effects)[0] for seed in range(runs)]
        covered = (
            statistics.fmean(speedup.low <= of_truth <= speedup.high for speedup in reported)
            for of_truth in (truth, 1 + effect)
        )
        claimed = statistics.fmean(speedup.verdict in (Verdict.FASTER, Verdict.SLOWER) for speedup in reported)
        blocks = statistics.fmean(speedup.blocks for speedup in reported)
        figures = [f"{effect:.0%}", f"{truth - 1:.1%}", *map(percent, (*covered, claimed)), f"{blocks:.1f}"]
        rows.append([name, effects, *figures])
    return rows


def _seven_cases() -> list[tuple[list[str], Case]]:
    """Return the rows about seven profiles: their first cells, and the runs."""
    kinds = [(name, CONSTANT, noise) for name in SEVEN for noise in ("normal", "bursts")]
    kinds += [("0% to 50%", effects, "normal") for effects in EFFECTS_VARY]
    return [
        (
            [name, effects, noise, rule],
            Case(SEVEN[name], SEVEN_PLANNED, SEVEN_DEVIATION, drops, noise, effects, precision),
        )
        for name, effects, noise in kinds
        for rule, (drops, precision) in selection.RULES.items()
    ]


def _row_of_seven(first: Sequence[str], of_case: selection.Rates) -> list[str]:
    covered = (of_case.covered, of_case.all_covered)
    figures = (*covered, of_case.false_claims, of_case.found, of_case.of_all.lost, of_case.share)
    return [*first, *map(percent, figures)]


def _coverage(planned: int, name: str, runs: int) -> list[list[str]]:
    """The rows of one kind of noise, in which everything is the same but the effect."""
    rows = []
    for effect in EFFECTS:
        shares_of = rates(NOISES[name], effect, runs, planned, with_bootstrap=True)
        print(f"{planned} blocks, {name}, {effect:.0%}: {shares_of}", file=sys.stderr, flush=True)
        shares = (shares_of.covered, shares_of.claimed, shares_of.excluded, shares_of.bootstrap_covered or 0)
        rows.append([name, f"{effect:.0%}", *map(percent, shares), f"{shares_of.blocks:.1f}"])
    return rows


def _power(name: str, difference: float, runs: int) -> list[str]:
    detected, named = power(NOISES[name], difference, runs)
    print(f"{name}, to find {difference:.0%}: {detected}, {named} blocks", file=sys.stderr, flush=True)
    return [name, f"{difference:.0%}", f"{named:.0f}", percent(detected)]


def main() -> int:
    options = script.simulation_parser("simulated", __doc__, RUNS).parse_args()
    error = math.sqrt(ERROR_RATE * (1 - ERROR_RATE) / options.runs)
    page_parts = [
        page.heading("Are the intervals and verdicts right?", __doc__ or ""),
        f"Each line is {options.runs:,} simulated runs; by chance alone a share of 5% or 95% is off by up to "
        f"{2 * error:.1%} (two standard deviations).\n\n{ABOUT}",
    ]
    with script.processes() as processes:
        lines = {
            planned: [processes.submit(_coverage, planned, name, options.runs) for name in NOISES]
            for planned in reversed(PLANNED)  # the longest first
        }
        of_varying = {
            planned: [
                processes.submit(_varying, planned, name, effects, options.runs)
                for name in VARY_BESIDE
                for effects in EFFECTS_VARY
            ]
            for planned in VARY_PLANNED
        }
        of_seven = [(first, processes.submit(selection.rates, case, options.runs)) for first, case in _seven_cases()]
        powers = [
            processes.submit(_power, name, difference, options.runs)
            for name in NOISES
            for difference in TO_FIND.get(name, TO_FIND_IN_OTHERS)
        ]
        for planned in PLANNED:
            rows = [row for of_noise in lines[planned] for row in of_noise.result()]
            page_parts += [f"## Runs of at most {planned} blocks", page.table(COVERAGE, rows, 2)]
        page_parts += ["## Effects that differ from block to block", ABOUT_VARYING]
        for planned, of_noises in of_varying.items():
            rows = [row for of_noise in of_noises for row in of_noise.result()]
            page_parts += [f"### Runs of at most {planned} blocks", page.table(VARY_COLUMNS, rows, 2)]
        rows = [_row_of_seven(first, of_case.result()) for first, of_case in of_seven]
        page_parts += ["## Seven profiles", ABOUT_SEVEN, page.table(SEVEN_COLUMNS, rows, 4)]
        promise = f"promises that the blocks it names find the difference {POWER:.0%} of the time"
        page_parts += [
            "## What `envkit plan` promises",
            f"It looks at {PILOT_BLOCKS} blocks and {promise}. Each run has a pilot of its own.",
            page.table(
                ("noise", "to find", "blocks named (median)", "found"), [future.result() for future in powers], 2
            ),
        ]
    page.write(options.page, page_parts)
    return 0


if __name__ == "__main__":
    sys.exit(script.run("simulated", main))
