"""Judge fits of what profiles gain: each training by what others taught, and by other machines if there are several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from envkit.advice import machine
from envkit.advice.expected import Expected, features
from envkit.advice.symptoms import FEATURES
from envkit.profiles import profile
from envkit.profiles.environment import overrides_vendor
from envkit.stats import normal
from envkit.stats.interval import ERROR_RATE

from benchmarks import fitting
from benchmarks.fitting import Features
from benchmarks.gallery_atlas import Chart, Gain, Measured, Published
from benchmarks.gallery_runs import START_S, WATCH_S
from benchmarks.regret import generator

NEAR = 0.03
# With fewer trainings there is nothing to learn, and less to judge.
FEWEST = 6


@dataclass(frozen=True)
class Timing:
    """How long a training's processes take, in seconds: it decides how many blocks fit into the time of a race."""

    start_s: float  # of a process, before the first step that counts
    step_s: float  # with nothing set
    watched_steps: int
    watched_s: float  # of these steps

    @property
    def watching_s(self) -> float:
        """The seconds of the watching, with the start of the process."""
        return self.start_s + self.watched_s


@dataclass(frozen=True)
class Training:
    """A training of the gallery on one machine: the features of both, and the gains of profiles by name."""

    name: str
    features: Features
    gains: Mapping[str, Gain]
    machine: str = ""
    # The log gains of each block by profile, where samples were kept: all lists are as long.
    blocks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    baseline_s: Sequence[float] = ()  # the baseline's seconds per step in these blocks
    timing: Timing | None = None  # None if unknown
    is_published: bool = False  # samples were not kept: the blocks are made up from the intervals

    @property
    def usable(self) -> dict[str, float]:
        """The speedups of the profiles whose losses agree with the baseline's."""
        return {name: gain.ratio for name, gain in self.gains.items() if not gain.losses_differ}

    @property
    def best(self) -> float:
        """The most that any profile gains whose losses agree with the baseline's; 1 where none does."""
        return max([1.0, *self.usable.values()])

    def gained(self, name: str | None) -> float:
        """Return the speedup of a profile; 1 for the baseline (None), and if its losses differ: it is of no use."""
        return 1.0 if name is None else self.usable.get(name, 1.0)


@dataclass(frozen=True)
class Judged:
    """The expectations for a training by fits that it taught nothing, the most first."""

    training: Training
    expected: Sequence[Expected]

    @property
    def advised(self) -> Expected | None:
        """The first profile, if it is worth trying."""
        first = self.expected[0]
        return first if first.is_worth_trying else None

    @property
    def gained(self) -> float:
        """The speedup of the advised profile."""
        return self.training.gained(self.advised.profile if self.advised else None)

    @property
    def near(self) -> bool:
        return self.gained * (1 + NEAR) >= self.training.best

    @property
    def false_hope(self) -> bool | None:
        """Return whether a profile is advised that is not surely faster, or whose losses differ.

        None if it has too few blocks for an interval.
        """
        if self.advised is None:
            return False
        gain = self.training.gains[self.advised.profile]
        return None if gain.speedup is None and not gain.losses_differ else not gain.is_faster

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
    title = chart.machine.title
    if published is not None:
        blocks = _blocks_like(published, measured.training)
        baseline_s = [math.exp(-value / math.sqrt(2)) for value in next(iter(blocks.values()), [])]
        timing = Timing(START_S, published.step_s, int(WATCH_S / published.step_s), WATCH_S)
        return Training(measured.training, known, measured.gains, title, blocks, baseline_s, timing, is_published=True)
    blocks = {name: [ratio for each in measured.sessions for ratio in each.ratios(name)] for name in measured.gains}
    complete = {name: ratios for name, ratios in blocks.items() if ratios and len(ratios) == measured.blocks}
    baseline_s = [block[0] for each in measured.sessions for block in each.blocks]
    return Training(measured.training, known, measured.gains, title, complete, baseline_s, _timing(measured))


def _blocks_like(published: Published, seed: str) -> dict[str, list[float]]:
    """Return log gains of blocks that have about the published ratios and intervals, by profile; none of one block.

    Their noise is normal. That of two profiles is independent, which makes their difference rather too noisy.
    """
    number, random = published.blocks, generator(seed)
    if number < 2:
        return {}
    scores = [normal.quantile((place + 0.5) / number) for place in range(number)]
    scale = math.sqrt(number / sum(score**2 for score in scores))
    width = 2 * -normal.quantile(ERROR_RATE / len(published.speedups) / 2)
    blocks = {}
    for name, (ratio, low, high) in published.speedups.items():
        deviation = math.log(high / low) / width * math.sqrt(number)
        drawn = random.permutation(scores)
        blocks[name] = [math.log(ratio) + deviation * scale * float(score) for score in drawn]
    return blocks


def _timing(measured: Measured) -> Timing | None:
    """Return how long the processes of a training took; None if that was not kept.

    A session starts each arm once before its blocks, and times the reference kernel, which counts as a part of starts.
    """
    symptoms = measured.watched.symptoms if measured.watched else None
    sessions = [session for session in measured.sessions if session.blocks and session.seconds]
    if symptoms is None or symptoms.step_s is None or symptoms.steps is None or not sessions:
        return None
    processes_s = [each.seconds / (len(each.names) * (len(each.blocks) + 1)) for each in sessions]
    timed_s = [each.steps * fmean(second for block in each.blocks for second in block) for each in sessions]
    start_s = max(0.0, median(processes_s) - median(timed_s))
    return Timing(start_s, symptoms.step_s, symptoms.steps, symptoms.seconds)


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


def judged(trainings: Sequence[Training], choices: Sequence[tuple[str, ...]]) -> list[Judged]:
    """Judge each training by fits to the others: of other trainings, and of other machines if there are several."""
    several = len(machines_of(trainings)) > 1
    judgements = []
    for training in trainings:
        others = [each for each in trainings if each.name != training.name]
        if several:
            others = [each for each in others if each.machine != training.machine]
        expected = []
        for name in training.gains:
            if len(_with(others, name)) >= FEWEST - 1:
                made, half = fits_of(others, name, choices)
                value = made.predict(training.features)
                expected.append(Expected(name, *map(math.exp, (value, value - half, value + half))))
        if expected:
            ranked = sorted(expected, key=lambda each: -each.cautious)
            judgements.append(Judged(training, ranked))
    return judgements


def is_supported(name: str) -> bool:
    """Return whether a profile overrides no vendor's check."""
    return not overrides_vendor(profile.load(name).preload)
