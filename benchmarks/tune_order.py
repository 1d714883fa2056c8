"""Does the tuner find as good a profile sooner where it begins with what is expected of them?

A simulated machine trains each model of the gallery: a profile makes it as much faster as it was measured to, and
trials have noise. The tuner's own search tries the shipped profiles in the order of its space, and in that of what is
expected.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
from envkit.bench.plan import REFERENCE_PROFILE
from envkit.bench.record import Event
from envkit.cli.arguments import count
from envkit.cli.tune_options import BUDGET_S, SPACE
from envkit.common.errors import InputError
from envkit.engines.base import PROJECT
from envkit.profiles import profile
from envkit.profiles.environment import Environment
from envkit.profiles.needs import TEXT_FACTS
from envkit.profiles.profile import Profile
from envkit.tuning import space_file
from envkit.tuning.expected_order import by_gain
from envkit.tuning.search import Candidate, Search
from envkit.tuning.session import in_order
from envkit.tuning.space import Fragment, Parameter, Space
from envkit.tuning.trial_store import BASELINE, TrialStore
from envkit.tuning.trials import COLD, TRIAL, WARM_UP

from benchmarks import page, script
from benchmarks.results import FOLDER
from benchmarks.simulated import NOISES

RUNS = 100
MAP = FOLDER / "tune_order.json"
SHAPE = '{"models": {MODEL: {"truth": {PROFILE: SPEEDUP}, "expected": {PROFILE: SPEEDUP}}}}'
TRIAL_S, STEP_S = 7.0, 0.3
NOISE = "independent"
NEAR = 0.03
MOST_TRIALS = 400
# Of profiles that were not measured on the gallery: that one of those that were which keeps memory, or replaces the
# runtime, in the same way. What has none gains nothing here.
RELATIVES = {
    "mimalloc-retain": "glibc-retain", "jemalloc-retain": "glibc-retain", "tcmalloc-retain": "glibc-retain",
    "mimalloc-retain-passive": "glibc-retain", "gnu-omp-glibc-retain": "glibc-retain",
    "intel-omp-jemalloc-retain": "glibc-retain", "intel-omp-throughput": "intel-omp", "llvm-omp": "intel-omp",
}  # fmt: skip
BEFORE, EXPECTED = ORDERS = ("the space's order", "by what is expected")
# Fields of an Outcome, and what they mean.
MEASURES = {
    "tried": "until a profile near the best was tried",
    "settled": "until the search had settled for such a one",
}
HEADER = ("model", "its best", *(f"{what}, {order}" for what in MEASURES for order in ORDERS))


@dataclass(frozen=True)
class Model:
    """By profile, how many times as fast a training is and is expected to be (by fits that it taught nothing)."""

    name: str
    truth: Mapping[str, float]
    expected: Mapping[str, float]

    def gain(self, name: str) -> float:
        return self.truth.get(name, self.truth.get(RELATIVES.get(name, ""), 1.0))

    @property
    def best(self) -> str:
        return max(self.truth, key=lambda name: self.truth[name])

    def is_near(self, name: str) -> bool:
        return self.gain(name) * (1 + NEAR) >= self.truth[self.best]


@dataclass(frozen=True)
class Outcome:
    """After how many trials a profile within 3% of the best was tried, and the search's best stayed such a one."""

    tried: float
    settled: float


Outcomes = dict[str, list[Outcome]]  # by the order


def models(path: Path) -> list[Model]:
    """Raises InputError for a file that has none."""
    try:
        found = [
            Model(name, *({named: float(gain) for named, gain in one[key].items()} for key in ("truth", "expected")))
            for name, one in json.loads(path.read_text())["models"].items()
        ]
    except OSError as error:
        raise InputError(f"--map {path}: {error.strerror}; give a file with {SHAPE}") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"--map {path}: must be JSON of the shape {SHAPE}") from None
    if not found or not all(one.truth for one in found):
        raise InputError(f"--map {path}: has no model, or one without a measured profile; give some")
    return found


def _resolved(made: Profile) -> Environment:
    """Without looking at any machine."""
    variables = {**made.env, "LD_PRELOAD": ":".join(made.preload)} if made.preload else made.env
    return Environment(made.name, made.title, dict(variables), {}, made.prefix, {}, made.numerics)


def _shipped(space: Space) -> list[Candidate]:
    """Those that need no more of a machine than its kind, and leave results alone, in the order of the space."""
    found = [profile.load(name) for name in profile.names() if name != REFERENCE_PROFILE]
    usable = [one for one in found if set(one.needs) <= {*TEXT_FACTS} and one.numerics == "same"]
    return in_order([Candidate(one, _resolved(one)) for one in usable], space.first)


def search(model: Model, seed: int, by_expectation: bool) -> Outcome:
    """Search once. Both orders have the same noise in their first trial, in their second, and so on."""
    whole = space_file.read(space_file.find(SPACE))
    # nothing but the shipped profiles is tried: what else the space has was not measured
    space = replace(whole, parameters=(Parameter("nothing", {"unset": Fragment()}),), constraints=())
    slowdowns = NOISES[NOISE](numpy.random.default_rng(seed), MOST_TRIALS)
    tried: list[str] = []
    best: list[tuple[int, bool]] = []  # after each round: the trials so far, and whether the search's best is near
    baseline = profile.load(REFERENCE_PROFILE)
    made = Search(
        space=space, baseline=Candidate(baseline, _resolved(baseline)),
        shipped=by_gain(_shipped(space), model.expected if by_expectation else {}), resolve=_resolved,
        store=TrialStore(), append=lambda event, **fields: {"event": event, **fields}, budget_s=BUDGET_S, seed=seed,
    )  # fmt: skip
    for kind in (COLD, WARM_UP):
        made.store.add({"event": kind, "worker_seconds": TRIAL_S})

    def trial(in_round: int, number: int, environment: Environment) -> Event:
        gain = 1.0 if number == BASELINE else model.gain(environment.profile)
        step_s = (STEP_S / gain * slowdowns[len(tried)]).tolist()
        tried.append("" if number == BASELINE else environment.profile)
        where = {"round": in_round, "candidate": number, "worker_seconds": TRIAL_S}
        return {"event": TRIAL, **where, "step_s": step_s, "seconds": sum(step_s), "usage": {}}

    def after_round(stage: str) -> None:
        number = made.best()
        best.append((len(tried), number is not None and model.is_near(made.candidates[number].profile.name)))

    made.run(trial, after_round)
    first = next((place for place, name in enumerate(tried, 1) if name and model.is_near(name)), math.inf)
    wrong = max((place for place, (_, near) in enumerate(best) if not near), default=-1)
    return Outcome(first, best[wrong + 1][0] if wrong + 1 < len(best) else math.inf)


def _outcomes(model: Model, runs: int) -> Outcomes:
    return {order: [search(model, seed, order == EXPECTED) for seed in range(runs)] for order in ORDERS}


def _spread(values: Sequence[float]) -> str:
    """``7 (5 to 9)``: the median, and the quartiles."""
    ordered = sorted(values)
    low, middle, high = (ordered[round(share * (len(ordered) - 1))] for share in (0.25, 0.5, 0.75))
    return f"{_number(middle)} ({_number(low)} to {_number(high)})"


def _number(trials: float) -> str:
    return "never" if math.isinf(trials) else f"{trials:.0f}"


def _columns(outcomes: Outcomes) -> list[str]:
    return [_spread([getattr(one, what) for one in outcomes[order]]) for what in MEASURES for order in ORDERS]


def _seconds(outcomes: Outcomes) -> str:
    """The medians, as a list."""
    lines = []
    for what, meaning in MEASURES.items():
        medians = {order: statistics.median(getattr(one, what) for one in outcomes[order]) for order in ORDERS}
        times = [f"{_number(TRIAL_S * trials)} s ({order})" for order, trials in medians.items()]
        lines.append(f"- {meaning}: {', '.join(times)}")
    return "\n".join(lines)


def _page(found: Sequence[tuple[Model, Outcomes]], left_out: Sequence[str], runs: int) -> list[str]:
    together: Outcomes = {order: [one for _, each in found for one in each[order]] for order in ORDERS}
    rows = [
        [model.name, f"{model.best}: {model.truth[model.best]:.2f}", *_columns(outcomes)] for model, outcomes in found
    ]
    nothing = f"Not here, as no profile makes them {NEAR:.0%} faster: {', '.join(left_out)}." if left_out else ""
    relatives = ", ".join(f"{name} as {relative}" for name, relative in RELATIVES.items())
    return [
        page.heading("The tuner's order of profiles", QUESTION, [{"time": time.time()}], page.machine()),
        "## What came out",
        f"Medians of {runs} searches for each of {len(found)} models, at {TRIAL_S:g} s a trial:",
        _seconds(together),
        "In trials, those of the baseline among them: the median, and the quartiles in brackets.",
        page.table(HEADER, [*rows, ["all of them", "", *_columns(together)]], 2),
        nothing,
        "## How",
        HOW.format(near=f"{NEAR:.0%}", relatives=relatives),
    ]


def _options() -> argparse.Namespace:
    about = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune_order", description=about)
    parser.add_argument("--runs", metavar="N", type=count, default=RUNS, help=f"of each model (default: {RUNS})")
    what = f"what profiles gain and are expected to (default: {MAP.relative_to(PROJECT)})"
    parser.add_argument("--map", metavar="FILE", type=Path, default=MAP, help=what)
    made = page.PAGES / "tune-order.md"
    parser.add_argument("--page", metavar="FILE", type=Path, default=made, help=f"default: docs/results/{made.name}")
    return parser.parse_args()


def main() -> int:
    options = _options()
    given = models(options.map)
    gaining = [one for one in given if one.truth[one.best] >= 1 + NEAR]
    if not gaining:
        raise InputError(f"--map {options.map}: no profile makes any model {NEAR:.0%} faster; there is nothing to find")
    with script.processes(len(os.sched_getaffinity(0))) as processes:
        started = [processes.submit(_outcomes, model, options.runs) for model in gaining]
        found = {model.name: one.result() for model, one in zip(gaining, started, strict=True)}
    left_out = [one.name for one in given if one not in gaining]
    page.write(options.page, _page([(model, found[model.name]) for model in gaining], left_out, options.runs))
    return 0


QUESTION = "Does `envkit tune` find as good a profile sooner where it begins with those of which the most is expected?"
HOW = """A simulated machine trains each model of the gallery. Under a profile it is as much faster as was measured,
and a trial has the noise that [simulated.md](simulated.md) calls *independent*. The tuner's own search, with the usual
budget, tries the shipped profiles that need nothing of a machine: once in the order of the space `default`, as it does
where nothing is expected, and once with those first of which the most is expected. What is expected for a model comes
from fits that this model taught nothing. Of what the space has besides nothing was measured, so it is not tried; and
the confirmation, which takes as long in both orders, is left out.

*Tried* is how many trials it takes until a profile within {near} of the model's best has had one, and *settled* how
many until the search's best is such a profile at the end of a round, and stays one to the end.

Few of the shipped profiles were measured on the gallery, and of the others nothing is expected. Some of them are taken
to gain what a relative does, and the rest gains nothing here: {relatives}."""


if __name__ == "__main__":
    sys.exit(script.run("tune_order", main))
