"""How long do 8, 64 and 500 nodes take to an answer, what do they waste, and how often are they wrong?

The tuner's own search, with simulated nodes in simulated time: what a setting is worth is planted, nodes differ, and
trials have noise. The nodes share candidates as they do on a cluster, and the answer is confirmed on all of them.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import optuna
from envkit.bench.record import Event
from envkit.cli.arguments import count
from envkit.engines.measurement import Usage
from envkit.profiles.environment import Environment
from envkit.profiles.profile import Profile
from envkit.stats.across_nodes import across_nodes
from envkit.stats.interval import ERROR_RATE
from envkit.stats.verdict import Verdict
from envkit.tuning import confirm, space_file
from envkit.tuning.events import TRIAL, WarmUp, parse, parse_all
from envkit.tuning.events import Event as TypedEvent
from envkit.tuning.search import Candidate, Search
from envkit.tuning.shared_trials import STUDY, SharedTrials
from envkit.tuning.space import Choice, Space, choices, profile
from envkit.tuning.trial_store import BASELINE, TrialStore, merged

from benchmarks import page, script

# Seconds of a trial, and of the budget of one node: 20 minutes alone, 5 minutes where others help.
TRIAL_S, ALONE_S, TOGETHER_S = 4.0, 1200.0, 300.0
# Standard deviations, as logarithms: of a trial's time, of the nodes' speeds, and of what a choice is worth on nodes.
NOISE, SPEED, DIFFER = 0.02, 0.03, 0.02
MARGIN = 0.01
NEAR = math.log(1.03)
# What one thing said in the shared file takes, in seconds, in which no other node can say anything: of 32 processes on
# this machine each wrote 200 a second, all together.
WRITE_S = 0.005
COARSE, DEFAULT = "coarse", "default"
# Tunings of a space by so many nodes. Of the default space one by 64 takes minutes, and one by 500 would take hours.
RUNS = {
    (COARSE, 1): 40, (COARSE, 8): 40, (COARSE, 64): 40, (COARSE, 500): 4,
    (DEFAULT, 1): 20, (DEFAULT, 8): 20, (DEFAULT, 64): 2,
}  # fmt: skip
# Confirmations alone, of a candidate that no search has chosen, and the deviations between nodes that they have.
CONFIRMATIONS, DIFFERENCES = 500, (0.0, 0.02, 0.05, 0.10, 0.20)
QUESTION = (
    "`envkit tune --nodes N` has N nodes search together and confirm on all of them. How long does that take, how much "
    "of it is wasted, how good is what is found, and how often is the answer wrong?"
)
HEADER = (
    "space", "nodes", "answer after", "candidates tried", "best is so much better", "within 3% of it", "tried twice",
    "baseline", "waiting", "interval misses", "false FASTER",
)  # fmt: skip
ALONE = """How often the interval misses what a candidate is worth on the type of node, of {count:,} confirmations
each, where no search has chosen it: 5% may. The interval takes it that equal nodes differ by about 10% in a speedup,
and learns better where many were measured; where few were, and they differ by more, it is too narrow."""
HOW = """The tuner's own search, its shared trials and its interval, in simulated time: a trial takes {trial_s:g} s, and
a node alone has {alone_s:g} s, one of several {together_s:g} s each. Of the spaces `coarse` has
{coarse} choices, and `default` more than a million; no shipped profile is tried. What each level of a parameter is
worth is drawn anew for each tuning; half of the parameters are worth nothing, and settings are worth the sum of what
each is.
Trials vary by {noise:.0%} (standard deviation; one in 20 by five times as much), nodes by {speed:.0%} in speed, and
what a choice is worth by {differ:.0%} from node to node.

- **best is so much better**: what the best choice of the space is worth over the one that was found, the median;
- **tried twice**: the share of trials of what another node had claimed at the same time; **baseline**: the share of
  trials that are the baseline's; **waiting**: the share of the nodes' time in which they waited for the last one, or
  for the shared file, in which all of them can say {a_second:.0f} things a second, as was measured on this machine;
- **interval misses**: how often the interval does not hold what the answer is worth on the type of node (5% may);
- **false FASTER**: how often an answer is called faster where nothing is worth anything, in as many tunings again.

Each row is of so many tunings as its shares say; shares have 95% intervals (Clopper and Pearson 1934). The time that
the search takes to choose is not in it: some tenths of a second a round."""


@dataclass(frozen=True)
class Outcome:
    """What came of one tuning. Times are in seconds; ``missed`` is by how much the best is better, as a logarithm."""

    answered_s: float
    candidates: int
    twice: float  # the share of trials of candidates that two nodes claimed at once
    baseline: float  # the share of trials of the baseline
    idle: float  # the share of the nodes' time in which they waited for the last one, or for the shared file
    missed: float
    faster: bool  # whether the answer is said to be faster than the baseline
    covered: bool  # whether the interval holds what the answer is worth on the type of node


class Truth:
    """What each choice is worth on the node type, and on each node: half of the parameters do nothing."""

    def __init__(self, space: Space, seed: int, scale: float) -> None:
        chance = random.Random(seed)
        self._seed, self._scale = seed, scale
        self.effects: dict[tuple[str, str], float] = {}
        for parameter in space.parameters:
            size = chance.choice([0.0, 0.0, 0.05, 0.2]) * scale
            first, *others = parameter.levels
            self.effects |= {(parameter.name, first): 0.0}
            self.effects |= {(parameter.name, level): chance.gauss(-0.02 * scale, size) for level in others}

    def __call__(self, choice: Choice) -> float:
        return sum(self.effects.get(pair, 0.0) for pair in choice.items())

    def on(self, node: int, choice: Choice) -> float:
        """Where a choice is worth nothing anywhere, nodes do not differ in it either."""
        worth = self(choice)
        return worth + random.Random(f"{self._seed}:{node}:{sorted(choice.items())}").gauss(0, DIFFER) * bool(worth)


class SharedFile(optuna.storages.InMemoryStorage):
    """What nodes say takes time, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.said = 0
        self._free_at = 0.0

    def create_new_trial(self, *words: Any, **named: Any) -> int:
        self.said += 1
        return super().create_new_trial(*words, **named)

    def set_trial_user_attr(self, *words: Any, **named: Any) -> None:
        self.said += 1
        super().set_trial_user_attr(*words, **named)

    def set_study_user_attr(self, *words: Any, **named: Any) -> None:
        self.said += 1
        super().set_study_user_attr(*words, **named)

    def wait(self, now: float) -> float:
        """How long what was said since the last call takes a node, from ``now`` on."""
        self._free_at = max(now, self._free_at) + self.said * WRITE_S
        self.said = 0
        return max(0.0, self._free_at - now)


def resolve(made: Profile) -> Environment:
    """Without looking at any machine."""
    variables = {**made.env, "PRELOADED": ",".join(made.preload)}
    return Environment(made.name, made.title, variables, {}, made.prefix, {}, made.numerics)


class Node:
    """One node, which searches beside its peers in simulated time, from 0 on."""

    def __init__(
        self, number: int, nodes: int, space: Space, truth: Truth, seed: int, storage: Any,
        noise: float = NOISE, vary: float = 0.0,
    ) -> None:  # fmt: skip
        """``noise`` is the standard deviation of a trial, ``vary`` that of a choice's worth from block to block."""
        self.number, self.truth = number, truth
        self._noise, self._vary = noise, vary
        self.events: list[Event] = []
        self._chance = random.Random(f"{seed}:{number}")
        self._speed = self._chance.gauss(0, SPEED)
        self.waited_s = 0.0  # for the shared file
        base = profile(space, {}, "baseline")
        assert base is not None, "no settings can't contradict each other"
        self.search = Search(
            space=space, baseline=Candidate(base, resolve(base)), shipped=(), resolve=resolve, store=TrialStore(),
            append=self._append, budget_s=ALONE_S if nodes == 1 else TOGETHER_S, seed=f"{seed}:{number}",
        )  # fmt: skip
        if nodes > 1:
            self.search.peers = SharedTrials(storage, f"node{number}", nodes, space)
        cold = parse(self._append("cold", worker_seconds=TRIAL_S))
        usage = Usage(user_s=1.0, system_s=0.0, minor_faults=0)
        warm_up = WarmUp(worker_seconds=TRIAL_S, step_s=[1.0], seconds=1.0, usage=usage, evidence={}, losses=[],
            digests={},
        )  # fmt: skip
        for event in (cold, warm_up):
            self.search.store.add(event)
        self.least_blocks = confirm.least_blocks(2, nodes)
        self.search.reserve = partial(confirm.reserve_s, warm_up, 2, nodes=nodes)

    def _append(self, event: str, **fields: Any) -> Event:
        self.events.append({"event": event, **fields})
        return self.events[-1]

    @property
    def now_s(self) -> float:
        return self.search.store.spent_s + self.waited_s

    def trial(self, in_round: int, number: int, environment: Environment) -> TypedEvent:
        choice = None if number == BASELINE else self.search.store.entries[number].choice
        step_s = math.exp(self._speed + self.noise() - (0.0 if choice is None else self._worth(choice)))
        where = {"round": in_round, "candidate": number, "worker_seconds": TRIAL_S}
        usage = {"user_s": step_s, "system_s": 0.0, "minor_faults": 0}
        return parse(self._append(TRIAL, **where, step_s=[step_s], seconds=step_s, usage=usage))

    def noise(self) -> float:
        """Of a trial: now and then a lot."""
        return self._chance.gauss(0, self._noise) * (5 if self._chance.random() < 0.05 else 1)

    def _worth(self, choice: Choice) -> float:
        """Return the effect of a choice in one block. A choice without effect does not vary."""
        worth = self.truth.on(self.number, choice)
        return worth + self._chance.gauss(0, self._vary) * bool(worth) if self._vary else worth

    def confirm(self, choice: Choice, blocks: int) -> list[float]:
        """The log ratios of so many blocks."""
        return [self._worth(choice) + self.noise() - self.noise() for _ in range(blocks)]


def tune(searched: str, nodes: int, seed: int, scale: float) -> Outcome:
    """One tuning of the space that is called ``searched``. With ``scale`` 0 no setting is worth anything."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = space_file.read(space_file.find(searched))
    truth, storage = Truth(space, seed, scale), SharedFile()
    optuna.create_study(storage=storage, study_name=STUDY, direction="maximize")
    all_nodes = [Node(number, nodes, space, truth, seed, storage) for number in range(nodes)]
    waiting = [(node.now_s, node.number) for node in all_nodes]
    heapq.heapify(waiting)
    while waiting:  # the node whose round ends next
        _, number = heapq.heappop(waiting)
        node = all_nodes[number]
        node.search.finish_round(node.trial)
        stage = node.search.begin_round()
        node.waited_s += storage.wait(node.now_s)
        if stage is not None:
            heapq.heappush(waiting, (node.now_s + TRIAL_S * len(node.search.store.missing()), number))
    return _outcome(all_nodes, space, truth)


def _outcome(all_nodes: Sequence[Node], space: Space, truth: Truth) -> Outcome:
    spent_s = [node.search.store.spent_s for node in all_nodes]
    searched_s = max(node.now_s for node in all_nodes)
    together = all_nodes[0].search.store
    if len(all_nodes) > 1:
        together = merged([parse_all(node.events) for node in all_nodes])
        all_nodes[0].search.store = together
    best = all_nodes[0].search.best()
    choice = (together.entries[best].choice if best is not None else None) or {}
    budget_s = all_nodes[0].search.budget_s
    blocks = max(all_nodes[0].least_blocks, int((budget_s - searched_s) / (2 * TRIAL_S + confirm.REFERENCE_KERNEL_S)))
    blocks = min(confirm.MOST_BLOCKS, blocks)
    ratios = [node.confirm(choice, blocks) for node in all_nodes]
    effect = across_nodes(ratios, ERROR_RATE, MARGIN)
    assert effect is not None, "each node has blocks"
    trials = [event for node in all_nodes for event in node.events if event["event"] == TRIAL]
    claimed = [event["number"] for node in all_nodes for event in node.events if event["event"] == "candidate"]
    lost = {*claimed} - {*together.entries}
    count_of = len(trials)
    return Outcome(
        answered_s=searched_s + 2 * TRIAL_S + blocks * (2 * TRIAL_S + confirm.REFERENCE_KERNEL_S),
        candidates=len(together.entries),
        twice=sum(event["candidate"] in lost for event in trials) / count_of,
        baseline=sum(event["candidate"] == BASELINE for event in trials) / count_of,
        idle=1 - statistics.fmean(spent_s) / searched_s,
        missed=best_of(space, truth) - truth(choice),
        faster=effect.speedup.verdict == Verdict.FASTER,
        covered=effect.speedup.low <= math.exp(truth(choice)) <= effect.speedup.high,
    )


def best_of(space: Space, truth: Truth) -> float:
    """What the best choice is worth: by changing one parameter after the other, from several beginnings."""
    from envkit.tuning.proposals import _random, neighbours

    best = 0.0
    beginnings = _random(space, random.Random(1))
    for _ in range(8):
        choice = next(beginnings)
        while (near := max(neighbours(space, choice), key=truth)) and truth(near) > truth(choice) + 1e-12:
            choice = near
        best = max(best, truth(choice))
    return best


def misses(nodes: int, differ: float) -> int:
    """Of so many confirmations, how many intervals do not hold the truth; nodes differ by ``differ``."""
    chance = numpy.random.default_rng(nodes)
    blocks = max(confirm.LEAST_OF_NODE, math.ceil(confirm.least_blocks(2) / nodes))
    missed = 0
    for _ in range(CONFIRMATIONS):
        node_effects = chance.normal(0, differ, nodes)[:, None] if differ else numpy.zeros((nodes, 1))
        ratios = node_effects + chance.normal(0, math.sqrt(2) * NOISE, (nodes, blocks))
        interval = across_nodes(ratios.tolist(), ERROR_RATE, MARGIN)
        assert interval is not None, "each node has blocks"
        missed += not interval.speedup.low <= 1 <= interval.speedup.high
    return missed


def _row(searched: str, nodes: int, outcomes: Sequence[Outcome], nothing: Sequence[Outcome]) -> list[str]:
    def middle(name: str) -> float:
        return statistics.median(getattr(outcome, name) for outcome in outcomes)

    runs = len(outcomes)
    return [
        searched, str(nodes), f"{middle('answered_s') / 60:.1f} min", f"{middle('candidates'):.0f}",
        f"{math.expm1(middle('missed')):.1%}", page.share(sum(outcome.missed <= NEAR for outcome in outcomes), runs),
        f"{middle('twice'):.1%}", f"{middle('baseline'):.0%}", f"{middle('idle'):.1%}",
        page.share(sum(not outcome.covered for outcome in outcomes), runs),
        page.share(sum(outcome.faster for outcome in nothing), len(nothing)),
    ]  # fmt: skip


def _options() -> argparse.Namespace:
    parser = script.page_parser("tune_nodes", __doc__)
    parser.add_argument("--runs", metavar="N", type=count, help="tunings of each number of nodes (default: 1 to 40)")
    spaces, nodes = (sorted({case[place] for case in RUNS}) for place in (0, 1))
    parser.add_argument("--space", choices=spaces, action="append", help="search these alone")
    parser.add_argument("--nodes", type=int, choices=nodes, action="append", help="by so many nodes alone")
    return parser.parse_args()


def main() -> int:
    options = _options()
    wanted = options.space or (COARSE, DEFAULT), options.nodes or (1, 8, 64, 500)
    cases = {case: options.runs or runs for case, runs in RUNS.items() if case[0] in wanted[0] and case[1] in wanted[1]}
    with script.processes() as processes:
        started = {
            case: [[processes.submit(tune, *case, seed, scale) for seed in range(runs)] for scale in (1.0, 0.0)]
            for case, runs in sorted(cases.items(), key=lambda case: -case[0][1])  # the longest first
        }
        alone = {
            nodes: [processes.submit(misses, nodes, differ) for differ in DIFFERENCES]
            for nodes in sorted({nodes for _, nodes in cases if nodes > 1})
        }
        outcomes = {case: [[future.result() for future in of_scale] for of_scale in started[case]] for case in cases}
        missed = {nodes: [future.result() for future in of_nodes] for nodes, of_nodes in alone.items()}
    how = HOW.format(
        trial_s=TRIAL_S, alone_s=ALONE_S, together_s=TOGETHER_S, noise=NOISE, speed=SPEED, differ=DIFFER,
        a_second=1 / WRITE_S,
        coarse=sum(1 for _ in choices(space_file.read(space_file.find(COARSE)))),
    )  # fmt: skip
    page.write(options.page, [
        page.heading("Tuning on many nodes", QUESTION),
        "## What came out",
        page.table(HEADER, [_row(*case, *both) for case, both in outcomes.items()], 1),
        "## The interval alone",
        ALONE.format(count=CONFIRMATIONS),
        page.table(
            ("nodes", *(f"nodes differ by {differ:.0%}" for differ in DIFFERENCES)),
            [[str(nodes), *(f"{count / CONFIRMATIONS:.1%}" for count in row)] for nodes, row in missed.items()], 1,
        ),
        "## How",
        how,
    ])  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(script.run("tune_nodes", main))
