"""Propose new candidates, and choose which earlier ones get more trials.

New ones are by turns those that main effects predict to be best, and those that Optuna's sampler proposes.

A sum of main effects is right about most of what settings do, and finds the best combination of them after few trials;
where settings depend on each other, or too little is known, Optuna's tree-structured Parzen estimator goes on looking.

Each call builds the study anew from the candidates and their scores of that moment. So scores can change with further
trials, and proposals depend on nothing but the space, the seed and what was measured: a search that was killed goes on
as it would have done.

More trials are for the better third of the candidates that had as many, on each rung. Candidates come in one after
another, and not all at once as in plain successive halving. So one is promoted as soon as it is among the best 1 / ETA
of those that got as far as it did. No candidate waits for a rung to be full.

References:
  K. Jamieson, A. Talwalkar: Non-stochastic best arm identification and hyperparameter optimization. AISTATS 2016.
  L. Li, K. Jamieson, A. Rostamizadeh, E. Gonina, M. Hardt, B. Recht, A. Talwalkar: A system for massively parallel
    hyperparameter tuning (asynchronous successive halving). MLSys 2020.
  J. Bergstra, R. Bardenet, Y. Bengio, B. Kegl: Algorithms for hyper-parameter optimization. NIPS 2011.
  T. Akiba, S. Sano, T. Yanase, T. Ohta, M. Koyama: Optuna. KDD 2019.
"""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from envkit.tuning.main_effects import predictor
from envkit.tuning.space import Choice, Space, allowed, choices

if TYPE_CHECKING:
    import optuna

# The first so many candidates are drawn at random, before there is something to go by.
STARTUP = 5
# How often the sampler may propose what is known already or conflicts, before chance takes its place.
TRIES = 12
# Spaces with fewer choices than this are searched through to the last one; of others, so many are drawn at a time.
COUNTABLE = 5_000
DRAWN = 300
# Predict nothing good of a level that failed this often and never ran.
FAILURES = 2
# The sampler is told of so many candidates at most, the best third of these among them: its time grows with them all.
TOLD = 300
# Where not all choices are looked at, the best is sought from the best so many of those that were tried or drawn: a
# parameter that counts only with some levels of others is reached from there alone.
BEGINNINGS = 3
# The same choice may be predicted differently by so much.
ROUNDING = 1e-9
# How many trials a candidate needs, all together, to be compared with the others on the same rung.
RUNGS = (1, 3)
ETA = 3


def propose(
    space: Space, scored: Sequence[tuple[Choice, float | None]], admit: Callable[[Choice], bool], count: int, seed: int
) -> list[Choice]:
    """Up to ``count`` choices, in order; fewer where the space has no more.

    ``scored`` are choices with their scores (higher is better), None for one that failed. ``admit`` says of a choice
    whether it is a new candidate, and remembers it.
    """
    chance = random.Random(seed)
    study = _study(space, _told(scored, chance), seed)
    predicted = _predicted(space, scored, chance)
    proposals: list[Choice] = []
    while len(proposals) < count:
        choice = next(filter(admit, predicted), None) if len(proposals) % 2 == 0 else None
        choice = choice or _asked(study, space, admit) or _drawn(space, admit, chance)
        if choice is None:
            break
        proposals.append(choice)
    return proposals


def _hopeless(scored: Iterable[tuple[Choice, float | None]]) -> set[tuple[str, str]]:
    """The levels, each with its parameter, with which several candidates failed and none ran."""
    failed = Counter(pair for choice, score in scored if score is None for pair in choice.items())
    ran = {pair for choice, score in scored if score is not None for pair in choice.items()}
    return {pair for pair, times in failed.items() if times >= FAILURES and pair not in ran}


def _predicted(
    space: Space, scored_before: Sequence[tuple[Choice, float | None]], chance: random.Random
) -> Iterator[Choice]:
    """Choices, the best by their main effects first; none while too little is known."""
    import numpy

    scored = [(choice, score) for choice, score in scored_before if score is not None]
    if len(scored) < STARTUP:
        return
    predicted = predictor(space, scored)
    hopeless = _hopeless(scored_before)

    def ranked(choices: Iterable[Choice]) -> list[tuple[float, Choice]]:
        pool = [choice for choice in choices if hopeless.isdisjoint(choice.items())]
        values = predicted(pool)
        return [(float(values[index]), pool[index]) for index in numpy.argsort(-values, kind="stable")]

    def climbed(value: float, choice: Choice) -> tuple[float, Choice]:
        """The one that is better than its neighbours, by changing one parameter after the other."""
        while (near := ranked(neighbours(space, choice))) and near[0][0] > value + ROUNDING:
            value, choice = near[0]
        return value, choice

    everything = all_choices(space)
    if everything is None:
        drawn = itertools.islice(_random(space, chance), DRAWN)
        ends = [climbed(*start) for start in ranked([*(choice for choice, _ in scored), *drawn])[:BEGINNINGS]]
        _, best = max(ends, key=lambda end: end[0])
        everything = [best, *neighbours(space, best)]
    for _, choice in ranked(everything):
        yield choice


def all_choices(space: Space) -> list[Choice] | None:
    """None for a space with so many that not all of them are looked at."""
    first = list(itertools.islice(choices(space), COUNTABLE))
    return first if len(first) < COUNTABLE else None


def neighbours(space: Space, choice: Choice) -> Iterator[Choice]:
    """The allowed choices in which one parameter has another level; those that begin to count then have their first."""
    for parameter in space.parameters:
        for level in parameter.levels if parameter.name in choice else ():
            changed: Choice = {}
            for other in space.parameters:
                if other.counts(changed):
                    kept = choice.get(other.name, next(iter(other.levels)))
                    changed[other.name] = level if other is parameter else kept
            if level != choice[parameter.name] and allowed(space, changed):
                yield changed


def _told(
    scored: Sequence[tuple[Choice, float | None]], chance: random.Random
) -> Sequence[tuple[Choice, float | None]]:
    """The best of what is known, and others by chance, where that is much."""
    if len(scored) <= TOLD:
        return scored
    ranked = sorted(scored, key=lambda pair: -math.inf if pair[1] is None else pair[1], reverse=True)
    best = ranked[: TOLD // 3]
    return best + chance.sample(ranked[len(best) :], TOLD - len(best))


def _study(space: Space, scored: Iterable[tuple[Choice, float | None]], seed: int) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, multivariate=True, group=True, constant_liar=True
        )
    study = optuna.create_study(sampler=sampler, direction="maximize")
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        parameter.name: optuna.distributions.CategoricalDistribution(tuple(parameter.levels))
        for parameter in space.parameters
    }
    for choice, score in scored:
        # one without a value ranks behind all that have one; a trial of state FAIL would not count at all
        state = optuna.trial.TrialState.PRUNED if score is None else optuna.trial.TrialState.COMPLETE
        own_distributions = {name: distributions[name] for name in choice}
        study.add_trial(optuna.create_trial(params=choice, distributions=own_distributions, value=score, state=state))
    return study


def _asked(study: optuna.Study, space: Space, admit: Callable[[Choice], bool]) -> Choice | None:
    import optuna

    for _ in range(TRIES):
        trial = study.ask()
        choice: Choice = {}
        for parameter in space.parameters:
            if parameter.counts(choice):
                choice[parameter.name] = str(trial.suggest_categorical(parameter.name, list(parameter.levels)))
        if allowed(space, choice) and admit(choice):
            return choice  # its trial goes on: the next proposals keep away from it
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return None


def _drawn(space: Space, admit: Callable[[Choice], bool], chance: random.Random) -> Choice | None:
    countable = all_choices(space)
    if countable is not None:
        chance.shuffle(countable)
        return next(filter(admit, countable), None)
    return next(filter(admit, itertools.islice(_random(space, chance), DRAWN)), None)


def _random(space: Space, chance: random.Random) -> Iterator[Choice]:
    while True:
        choice: Choice = {}
        for parameter in space.parameters:
            if parameter.counts(choice):
                choice[parameter.name] = chance.choice(list(parameter.levels))
        if allowed(space, choice):
            yield choice


def promoted(
    scores: Mapping[int, float], rung_of: Mapping[int, int], trials: Mapping[int, int], rungs: Sequence[int] = RUNGS
) -> dict[int, int]:
    """Candidates that go up now, with the rung that each goes to.

    ``scores`` (higher is better) are those of the candidates that have not failed; ``rung_of`` is the rung that each is
    on, ``trials`` how many it has had. A candidate is ranked on its rung, and goes up, once it has all trials of it.
    """
    going: dict[int, int] = {}
    for rung in range(len(rungs) - 1):
        reached = [
            number
            for number in scores
            if rung_of[number] > rung or (rung_of[number] == rung and trials[number] >= rungs[rung])
        ]
        best = sorted(reached, key=lambda number: (-scores[number], number))[: len(reached) // ETA]
        going |= {number: rung + 1 for number in best if rung_of[number] == rung}
    return going
