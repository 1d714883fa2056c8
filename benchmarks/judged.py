"""Judge fits of what profiles gain: each training by what others taught, and by other machines if there are several."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from envkit.advice import machine
from envkit.advice.expected import Expected, features
from envkit.advice.symptoms import FEATURES
from envkit.profiles import profile
from envkit.profiles.environment import overrides_vendor
from envkit.stats.interval import ERROR_RATE
from envkit.stats.verdict import Verdict

from benchmarks import fitting
from benchmarks.fitting import Features
from benchmarks.gallery_atlas import Chart, Gain, Measured
from benchmarks.regret import Regret, draws_of_blocks, draws_of_intervals, of_ratio, pooled

NEAR = 0.03
# With fewer trainings there is nothing to learn, and less to judge.
FEWEST = 6


@dataclass(frozen=True)
class Training:
    """A training of the gallery on one machine: the features of both, and the gains of profiles by name."""

    name: str
    features: Features
    gains: Mapping[str, Gain]
    machine: str = ""
    # The log gains of each block by profile, where samples were kept: all lists are as long.
    blocks: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """The most that any profile gains; 1 where none does."""
        return max(1.0, *(gain.ratio for gain in self.gains.values()))


@dataclass(frozen=True)
class Judged:
    """The expectations for a training by fits that it taught nothing, the most first.

    The best of the first ``raced`` profiles is taken.
    """

    training: Training
    expected: Sequence[Expected]
    raced: int = 1

    @property
    def advised(self) -> Expected | None:
        worth = [each for each in self.expected[: self.raced] if each.is_worth_trying]
        return max(worth, key=lambda each: self.training.gains[each.profile].ratio, default=None)

    @property
    def gained(self) -> float:
        """The speedup of the advised profile; a race keeps the baseline if nothing is faster."""
        gained = self.training.gains[self.advised.profile].ratio if self.advised else 1.0
        return max(1.0, gained) if self.raced > 1 else gained

    @property
    def chosen(self) -> str | None:
        """The profile that is kept in the end; None is the baseline."""
        if self.advised is None or (self.raced > 1 and self.gained == 1):
            return None
        return self.advised.profile

    @property
    def near(self) -> bool:
        return self.gained * (1 + NEAR) >= self.training.best

    @property
    def false_hope(self) -> bool:
        """Return whether a profile is advised that is not surely faster."""
        return self.advised is not None and self.training.gains[self.advised.profile].verdict != Verdict.FASTER

    @property
    def within(self) -> list[bool]:
        """Return for each profile whether its gain lies in the range."""
        return [
            expected.low <= self.training.gains[expected.profile].ratio <= expected.high for expected in self.expected
        ]


def trainings_of(charts: Sequence[Chart]) -> list[Training]:
    """Return each training on each machine that was watched there.

    Gains that were published without samples count if the machine has no others of the training.
    """
    rows: dict[tuple[str, str], Training] = {}
    for chart in charts:  # published ones are the last
        for name, measured in chart.trainings.items():
            training = _training(chart, measured)
            if training.features:
                rows.setdefault((chart.machine.title, name), training)
    return list(rows.values())


def _training(chart: Chart, measured: Measured) -> Training:
    published = next((session.published for session in measured.sessions if session.published), None)
    watched = measured.watched
    seen: dict[str, float | None] = {}
    if watched is not None:
        seen = features(watched.symptoms)
    elif published is not None:
        seen = {each.name: published.features.get(each.name) for each in FEATURES}
    known = {**seen, **machine.features(chart.machine, chart.fault_s)} if seen else {}
    blocks = {name: [ratio for each in measured.sessions for ratio in each.ratios(name)] for name in measured.gains}
    complete = {name: ratios for name, ratios in blocks.items() if ratios and len(ratios) == measured.blocks}
    return Training(measured.training, known, measured.gains, chart.machine.title, complete)


def machines_of(trainings: Sequence[Training]) -> list[str]:
    return list(dict.fromkeys(training.machine for training in trainings))


def profiles_of(trainings: Sequence[Training]) -> list[str]:
    """Return the profiles that were measured with enough trainings for a fit."""
    names = list(dict.fromkeys(name for training in trainings for name in training.gains))
    return [name for name in names if len(_with(trainings, name)) >= FEWEST]


def _with(trainings: Sequence[Training], name: str) -> list[Training]:
    return [training for training in trainings if name in training.gains]


def fits_of(
    trainings: Sequence[Training], name: str, choices: Sequence[tuple[str, ...]]
) -> tuple[fitting.Ridge, float]:
    """Fit a profile's gains, with terms of the machine if there are several machines."""
    measured = _with(trainings, name)
    gains = [math.log(training.gains[name].ratio) for training in measured]
    tried = fitting.with_machine(choices) if len(machines_of(measured)) > 1 else choices
    groups = [training.name for training in measured]
    return fitting.best(tried, [training.features for training in measured], gains, groups)


def judged(
    trainings: Sequence[Training],
    choices: Sequence[tuple[str, ...]],
    allowed: Callable[[str], bool] = lambda name: True,
    raced: int = 1,
) -> list[Judged]:
    """Judge each training by fits to the others: of other trainings, and of other machines if there are several.

    Only profiles that are ``allowed`` are advised, and of the first ``raced`` the one that gains most.
    """
    several = len(machines_of(trainings)) > 1
    judgements = []
    for training in trainings:
        others = [each for each in trainings if each.name != training.name]
        if several:
            others = [each for each in others if each.machine != training.machine]
        expected = []
        for name in training.gains:
            if allowed(name) and len(_with(others, name)) >= FEWEST - 1:
                made, half = fits_of(others, name, choices)
                value = made.predict(training.features)
                expected.append(Expected(name, *map(math.exp, (value, value - half, value + half))))
        if expected:
            ranked = sorted(expected, key=lambda each: -each.cautious)
            judgements.append(Judged(training, ranked, raced))
    return judgements


def regret(judgements: Sequence[Judged]) -> Regret:
    """Return how much slower the advice is than the best of the profiles that were measured, with its bound."""
    return pooled([_draws(each.training) for each in judgements], [each.chosen for each in judgements])


def _draws(training: Training) -> Mapping[str, Sequence[float]]:
    """Return what each profile's log gain may be: by its blocks, or by its interval where these were not kept."""
    kept = draws_of_blocks(training.blocks, training.name)
    others = {name: gain for name, gain in training.gains.items() if name not in kept}
    intervals = {name: gain.speedup or of_ratio(gain.ratio) for name, gain in others.items()}
    return {**kept, **draws_of_intervals(intervals, ERROR_RATE / max(1, len(training.gains)), training.name)}


def is_supported(name: str) -> bool:
    """Return whether a profile overrides no vendor's check."""
    return not overrides_vendor(profile.load(name).preload)
