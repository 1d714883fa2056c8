"""How good is the tuner's answer beside the noise that samples really have, and how far is a written gain overstated?

The tuner's own search in simulated time, as in ``benchmarks/tune_nodes.py``, on one machine whose trials have more
noise and where what a choice gains varies from block to block. Then confirmations alone, of a gain that is known.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import optuna
from envkit.bench.study import MARGIN
from envkit.cli.arguments import count
from envkit.stats.interval import Speedup
from envkit.stats.sequential import at_end, design
from envkit.stats.verdict import Verdict
from envkit.tuning import confirm, space_file
from envkit.tuning.space import choices

from benchmarks import page, script
from benchmarks.tune_nodes import COARSE, NEAR, TRIAL_S, Node, Truth

TUNINGS, CONFIRMATIONS = 200, 4000
# Standard deviations, as logarithms: of a trial's time, and of what a choice gains from block to block.
NOISES, VARY = (0.02, 0.10, 0.15), 0.05
# True gains of confirmed profiles, and blocks of confirmations.
GAINS, BLOCKS = (0.02, 0.05, 0.10, 0.20), (8, 20, 45)
# The median of fewer runs is not shown.
SHOWN = 20
QUESTION = (
    "Samples on shared machines vary by 11% to 20%. How good is then what `envkit tune` finds, and how far is the "
    "gain overstated that it writes?"
)
SEARCHES = ("noise of a trial", "best is so much better", "within 3% of it", "FASTER", "true gain", "written gain")
ALONE = ("noise of a trial", "blocks", "true gain", "FASTER", "written gain", "low end", "with a caution",
         "written gain without one")  # fmt: skip
SEARCHED = """{tunings} tunings of the space `coarse` for each noise, on one machine with 20 minutes; a trial takes
{trial_s:g} s. Each tuning draws new effects of the levels. The effect of a choice varies by {vary:.0%} from block
to block (standard deviation), and one trial in 20 has five times the noise. "Best is so much better" is the median of
what the best choice gains over the one that was found. The last two columns are medians over the tunings whose answer
is FASTER. The written gain comes from fresh samples, so only the choice to write it favours it."""
CONFIRMED = """{runs:,} confirmations for each line, with the same noise and variation. Runs with too little noise in
their favour end as "no difference found". So the gain of those that are FASTER is overstated (Gelman and Carlin 2014),
the more so the smaller it is beside the noise. All gains are medians over the runs that are FASTER, "low end" is that
of their intervals. A report and a tuned profile name the low end as the gain to rely on where it is below half of
the gain. The last two columns say how often that is, and what the gain is in the other runs ("-" for fewer than
{shown})."""


@dataclass(frozen=True)
class Outcome:
    """What came of one tuning: all as logarithms. ``missed`` is by how much the best choice is better."""

    missed: float
    true: float
    confirmed: Speedup


def tune(noise: float, seed: int) -> Outcome:
    """Return the outcome of one tuning on one machine, whose own gains are the truth."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = space_file.read(space_file.find(COARSE))
    truth = Truth(space, seed, 1.0)
    node = Node(0, 1, space, truth, seed, None, noise, VARY)
    node.search.run(node.trial)
    best = node.search.best()
    choice = (node.search.store.entries[best].choice if best is not None else None) or {}
    left_s = node.search.budget_s - node.now_s - 2 * TRIAL_S
    blocks = max(node.least_blocks, int(left_s / (2 * TRIAL_S + confirm.REFERENCE_KERNEL_S)))
    confirmed = _confirmed(node.confirm(choice, min(confirm.MOST_BLOCKS, blocks)))
    most = max(truth.on(0, possible) for possible in choices(space))
    return Outcome(max(most, 0.0) - truth.on(0, choice), truth.on(0, choice), confirmed)


def _confirmed(ratios: Sequence[float]) -> Speedup:
    """Return the interval of a confirmation, whose number of blocks is fixed, from its log ratios."""
    speedup = at_end(design(len(ratios), 1), ratios, MARGIN, stopped_early=False)
    assert speedup is not None, "there are enough blocks"
    return speedup


def confirmations(noise: float, blocks: int, gain: float, runs: int) -> list[Speedup]:
    """Return what so many confirmations of a true ``gain`` report that are FASTER."""
    chance = numpy.random.default_rng(blocks)
    wild = numpy.where(chance.random((2, runs, blocks)) < 0.05, 5.0, 1.0)
    two = chance.normal(0, noise, (2, runs, blocks)) * wild
    ratios = math.log1p(gain) + chance.normal(0, VARY, (runs, blocks)) + two[0] - two[1]
    reported = [_confirmed(of_run) for of_run in ratios.tolist()]
    return [speedup for speedup in reported if speedup.verdict == Verdict.FASTER]


def _gain(ratios: Sequence[float]) -> str:
    """Return the median of these ratios as a gain; "-" for too few."""
    return f"{statistics.median(ratios) - 1:.1%}" if len(ratios) >= SHOWN else "-"


def _searched(noise: float, outcomes: Sequence[Outcome]) -> list[str]:
    faster = [outcome for outcome in outcomes if outcome.confirmed.verdict == Verdict.FASTER]
    return [
        f"{noise:.0%}", f"{math.expm1(statistics.median(outcome.missed for outcome in outcomes)):.1%}",
        page.share(sum(outcome.missed <= NEAR for outcome in outcomes), len(outcomes)),
        page.share(len(faster), len(outcomes)), _gain([math.exp(outcome.true) for outcome in faster]),
        _gain([outcome.confirmed.ratio for outcome in faster]),
    ]  # fmt: skip


def _alone(noise: float, blocks: int, gain: float, runs: int) -> list[str]:
    faster = confirmations(noise, blocks, gain, runs)
    plain = [speedup.ratio for speedup in faster if not speedup.may_be_overstated]
    cautioned = 1 - len(plain) / len(faster) if faster else 0.0
    return [
        f"{noise:.0%}", str(blocks), f"{gain:.0%}", f"{len(faster) / runs:.1%}",
        _gain([speedup.ratio for speedup in faster]), _gain([speedup.low for speedup in faster]), f"{cautioned:.0%}",
        _gain(plain),
    ]  # fmt: skip


def main() -> int:
    parser = script.page_parser("tune_noise", __doc__)
    parser.add_argument("--tunings", metavar="N", type=count, default=TUNINGS, help=f"(default: {TUNINGS})")
    parser.add_argument("--runs", metavar="N", type=count, default=CONFIRMATIONS,
                        help=f"confirmations of each line (default: {CONFIRMATIONS})")  # fmt: skip
    options = parser.parse_args()
    with script.processes() as processes:
        tunings = {noise: [processes.submit(tune, noise, seed) for seed in range(options.tunings)] for noise in NOISES}
        lines = [
            processes.submit(_alone, noise, blocks, gain, options.runs)
            for noise in NOISES[1:] for blocks in BLOCKS for gain in GAINS
        ]  # fmt: skip
        searched = [_searched(noise, [future.result() for future in of_noise]) for noise, of_noise in tunings.items()]
        confirmed = [line.result() for line in lines]
    page.write(options.page, [
        page.heading("Tuning beside noise", QUESTION),
        "## The whole tuner",
        SEARCHED.format(tunings=options.tunings, trial_s=TRIAL_S, vary=VARY),
        page.table(SEARCHES, searched, 0),
        "## The gain that is written",
        CONFIRMED.format(runs=options.runs, shown=SHOWN),
        page.table(ALONE, confirmed, 0),
    ])  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(script.run("tune_noise", main))
