"""The atlas of machines: all sessions of the gallery's trainings on all machines, in one file that only grows.

A line is a session of one training on one machine. It has the seconds of each block, and other programs.
A chart has all sessions of one machine: of each training and profile the speedup by all of its blocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median

from envkit.advice.machine import Machine, machine_of
from envkit.advice.symptoms import Symptoms
from envkit.analysis.result import Comparison, Result, conclude
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.decide import FAILED, NOT_IN_EFFECT
from envkit.bench.events import Sample
from envkit.bench.problems import problem_of
from envkit.bench.run import read
from envkit.bench.study import MARGIN
from envkit.common import codec
from envkit.engines.measurement import probe
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.rendering import text
from envkit.report import verdict
from envkit.stats.interval import ERROR_RATE, Speedup, log_ratios, middle_of, speedup
from envkit.stats.verdict import Verdict

from benchmarks import growing, page, recorded

ATLAS = page.PAGES / "gallery.jsonl"
# The folders of an absolute path, but for the file's name: a page is read elsewhere.
FOLDERS = re.compile(r"(?<![\w.…])/(?:[\w.+@-]+/)+")


@dataclass(frozen=True)
class Watched:
    """Observations of a training and its machine before a session.

    ``fault_s`` is the cost of a page fault, and ``disturbed`` names the interference meanwhile.
    """

    symptoms: Symptoms
    fault_s: float
    disturbed: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Agreement:
    """How far a profile's losses are from the baseline's, as a share of these; None if one is no finite number."""

    difference: float | None
    agrees: bool


@dataclass(frozen=True)
class Published:
    """The figures of a session that a page had, and whose samples were not kept."""

    blocks: int
    disturbed: int  # blocks
    step_s: float  # seconds of the baseline's step, the median over samples
    speedups: dict[str, list[float]]  # by profile: the ratio, and the low and the high end of its interval
    features: dict[str, float]  # what was observed of the training with nothing set (``advice.symptoms.FEATURES``)


@dataclass(frozen=True)
class Session:
    """One training's measurement on one machine. Lists by arm are in the order of ``names``, the baseline first."""

    training: str  # its name in the gallery's list
    began: float  # seconds since 1970
    commit: str
    machine: Machine
    system: str  # the machine, its system and its Python in one line
    torch: str = "?"
    libraries: dict[str, str] = field(default_factory=dict)  # what brought each preloaded library, with its version
    seconds: float = 0.0  # how long the session took
    steps: int = 0  # timed steps of a sample
    names: list[str] = field(default_factory=list)
    blocks: list[list[float]] = field(default_factory=list)  # seconds of a step, the mean of a sample, by arm
    disturbed: list[list[int]] = field(default_factory=list)  # of each block, the arms that were disturbed, by number
    system_share: list[float] = field(default_factory=list)  # the kernel's share of the CPU time, by arm
    peak_mib: list[float] = field(default_factory=list)  # peak memory, by arm
    losses: dict[str, Agreement] = field(default_factory=dict)  # by profile, of a session with enough blocks
    watched: Watched | None = None
    failure: str = ""  # why it ended early
    # The least and the most seconds of the same fixed work in undisturbed blocks, if they differ by much.
    kernel_range_s: tuple[float, float] | None = None
    published: Published | None = None

    def to_json(self) -> dict[str, object]:
        """Return a document without the fields that have their defaults."""
        plain = Session(self.training, self.began, self.commit, self.machine, self.system)
        defaults = asdict(plain)
        required = ("training", "began", "commit", "machine", "system")
        return {key: value for key, value in asdict(self).items() if key in required or value != defaults[key]}

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Session:
        """Parse a line. Raise KeyError or ValueError if it is invalid."""
        session = codec.parse(document, Session)
        if not (session.blocks or session.published or session.failure):
            raise ValueError("it has no block, no speedup and no failure")
        if len(session.disturbed) != len(session.blocks):
            raise ValueError("its blocks and their disturbances differ in number")
        if any(len(block) != len(session.names) or min(block, default=0) <= 0 for block in session.blocks):
            raise ValueError("a block lacks the time of an arm")
        published = session.published.speedups if session.published else {}
        if any(len(ends) != 3 or min(ends) <= 0 for ends in published.values()):
            raise ValueError("a published speedup is a ratio, its low and its high end")
        return session

    @property
    def was_watched(self) -> bool:
        """Return whether the training was watched, and undisturbed."""
        return self.watched is not None and not self.watched.disturbed

    def ratios(self, profile: str) -> list[float]:
        """Return the logarithm of the baseline's time over the profile's, of each block that has both."""
        if profile not in self.names:
            return []
        arm = self.names.index(profile)
        return log_ratios([block[0] for block in self.blocks], [block[arm] for block in self.blocks])


def read_sessions(path: Path) -> list[Session]:
    """Return the sessions of a file, as ``growing.read`` does."""
    return growing.read(path, Session.from_json)


def session_of(folder: Path, commit: str, watched: Watched | None) -> Session:
    """Return the session whose record is in ``folder``, ended or not. Raise InputError if there is no record."""
    measured, run = recorded.session_of(folder, commit), read(folder)
    with record.reading(folder):
        result = conclude(run)
        study, inspection = run.study, run.inspection(run.study.reference)
        invalid = {arm.arm for arm in result.not_in_effect}
        kept = [arm for arm in study.arms if arm.name not in invalid]
        places = [measured.names.index(arm.name) for arm in kept]
        is_valid = study.reference.name not in invalid
        return Session(
            training=study.title,
            began=measured.began,
            commit=commit,
            machine=machine_of(inspection),
            system=page.described(inspection["fingerprint"], inspection["facts"], inspection["python"]["version"]),
            torch=_torch(run.samples()),
            libraries=_libraries(inspection, result.environments),
            seconds=round(max(event.time for event in run.events) - measured.began, 1),
            steps=measured.steps,
            names=[arm.name for arm in kept],
            blocks=[[block[place] for place in places] for block in measured.blocks] if is_valid else [],
            disturbed=[_places(hit, places) for hit in measured.disturbed] if is_valid else [],
            system_share=_by_arm(result, kept, "system_share", 1.0, 4),
            peak_mib=_by_arm(result, kept, "peak_memory_bytes", 2**20, 0),
            losses={each.arm: agreement for each in result.comparisons if (agreement := _agreement(each))},
            watched=watched,
            failure=failure_of(result) or "",
            kernel_range_s=result.reference_kernel_range_s,
        )


def _torch(samples: Sequence[Sample]) -> str:
    """Return the versions of PyTorch that the processes imported: only they know those of a user's command."""
    return ", ".join(sorted({str(probe(sample.evidence, "torch").get("version") or "?") for sample in samples})) or "?"


def _libraries(inspection: Inspection, environments: Mapping[str, Environment]) -> dict[str, str]:
    names = sorted({name for environment in environments.values() for name in environment.preload})
    return {name: _library(inspection, name) for name in names}


def _library(inspection: Inspection, name: str) -> str:
    """Return the package or the version of a library that was found; its file's name if neither is known."""
    library = inspection["libraries"][name]
    packages = {package: version for package, version in inspection["packages"].items() if name in package and version}
    if packages and library["path"].startswith(inspection["python"]["prefix"]):
        return "; ".join(f"{package} {version}" for package, version in packages.items())
    provider = inspection["providers"].get(name)
    return provider or (f"{name} {library['version']}" if library["version"] else Path(library["path"]).name)


def _places(hit: Sequence[int], places: Sequence[int]) -> list[int]:
    return [places.index(arm) for arm in hit if arm in places]


def _by_arm(result: Result, arms: Sequence[Arm], field_name: str, unit: float, digits: int) -> list[float]:
    """Return one of the medians over an arm's samples, in a unit, by arm; nothing if an arm has no sample."""
    values = {measured.arm: float(getattr(measured, field_name)) for measured in result.measured}
    return [round(values[arm.name] / unit, digits) for arm in arms] if all(arm.name in values for arm in arms) else []


def _agreement(comparison: Comparison) -> Agreement | None:
    losses = comparison.losses
    if losses is None:
        return None
    difference = losses.largest_difference
    return Agreement(float(f"{difference:.3g}") if math.isfinite(difference) else None, losses.agree)


def failure_of(result: Result) -> str | None:
    """Return why a run ended early; None if it did not, and after an interrupt, which is no failure."""
    if result.ended not in (FAILED, NOT_IN_EFFECT):
        return None
    comparisons = result.comparisons
    culprit = next((each for each in comparisons if each.verdict == Verdict.NOT_IN_EFFECT), comparisons[0])
    sentences = [text(verdict.without_speedup(result, culprit))]
    for failed_worker in result.failures[-1:]:
        last = "".join(f": {line}" for line in failed_worker.stderr.strip().splitlines()[-1:])
        sentences.append(f"the worker of {failed_worker.arm} {text(problem_of(failed_worker))}{last}")
    checks = [check for missed in result.not_in_effect for check in missed.checks if not check.holds]
    sentences += [f"{check.key}: expected {check.expected}, observed {check.seen}" for check in checks]
    return FOLDERS.sub("…/", "; ".join(sentences))


# --- all sessions of one machine ---


@dataclass(frozen=True)
class Gain:
    """How many times as fast a training is under a profile on a machine. ``speedup`` is None with too few blocks."""

    ratio: float
    blocks: int
    speedup: Speedup | None
    losses: Agreement | None

    @property
    def losses_differ(self) -> bool:
        return self.losses is not None and not self.losses.agrees

    @property
    def verdict(self) -> Verdict:
        return self.speedup.verdict if self.speedup else Verdict.TOO_FEW_SAMPLES

    @property
    def is_faster(self) -> bool:
        """Return whether the whole interval is above 1, and what is learnt is the same."""
        return self.verdict == Verdict.FASTER and not self.losses_differ

    @property
    def is_slower(self) -> bool:
        return self.verdict == Verdict.SLOWER

    @property
    def high(self) -> float:
        """The high end of the interval; the ratio without one."""
        return self.speedup.high if self.speedup else self.ratio


@dataclass(frozen=True)
class Measured:
    """One training on one machine, by all of its sessions, and the gain of each profile."""

    training: str
    sessions: Sequence[Session]
    gains: Mapping[str, Gain]

    @property
    def blocks(self) -> int:
        published = sum(session.published.blocks for session in self.sessions if session.published)
        return published + sum(len(session.blocks) for session in self.sessions)

    @property
    def disturbed(self) -> int:
        """How many blocks were disturbed from outside."""
        published = sum(session.published.disturbed for session in self.sessions if session.published)
        return published + sum(bool(arms) for session in self.sessions for arms in session.disturbed)

    @property
    def step_s(self) -> float:
        """The seconds of the baseline's step, the median over samples."""
        published = [session.published.step_s for session in self.sessions if session.published]
        return median([*published, *(block[0] for session in self.sessions for block in session.blocks)])

    @property
    def faster(self) -> list[str]:
        return [profile for profile, gain in self.gains.items() if gain.is_faster]

    @property
    def slower(self) -> list[str]:
        return [profile for profile, gain in self.gains.items() if gain.is_slower]

    @property
    def best(self) -> str | None:
        """The fastest of the profiles that are surely faster and learn the same; None without one."""
        return max(self.faster, key=lambda profile: self.gains[profile].ratio, default=None)

    @property
    def best_ratio(self) -> float:
        """The speedup of the best profile; 1 without one."""
        return self.gains[self.best].ratio if self.best else 1.0

    @property
    def watched(self) -> Watched | None:
        """Return the latest observation without interference; None if all had some."""
        return next((each.watched for each in reversed(self.sessions) if each.was_watched), None)


@dataclass(frozen=True)
class Chart:
    """One machine, and its trainings by name. ``is_published`` if only intervals were kept, not the samples."""

    machine: Machine
    is_published: bool
    trainings: Mapping[str, Measured]

    @property
    def sessions(self) -> list[Session]:
        return [session for measured in self.trainings.values() for session in measured.sessions]

    @property
    def blocks(self) -> int:
        return sum(measured.blocks for measured in self.trainings.values())

    @property
    def profiles(self) -> list[str]:
        """All profiles that some training was measured with, in the order of the first."""
        return list(dict.fromkeys(name for measured in self.trainings.values() for name in measured.gains))

    @property
    def common_profiles(self) -> list[str]:
        """The profiles that all trainings were measured with."""
        return [name for name in self.profiles if all(name in each.gains for each in self.trainings.values())]

    @property
    def fault_s(self) -> float | None:
        """The cost of a page fault in seconds, the median over sessions; None if it was not measured."""
        costs = [session.watched.fault_s for session in self.sessions if session.watched and session.was_watched]
        return median(costs) if costs else None


def charts(sessions: Sequence[Session]) -> list[Chart]:
    """Return a chart for each machine: those with the most blocks first, and published ones last."""
    machines: dict[tuple[Machine, bool], dict[str, list[Session]]] = {}
    for session in sorted(sessions, key=lambda each: each.began):
        if session.blocks or session.published:
            key = (replace(session.machine, name=""), session.published is not None)
            machines.setdefault(key, {}).setdefault(session.training, []).append(session)
    made = []
    for (_, is_published), trainings in machines.items():
        measured = {training: Measured(training, of_it, _gains(of_it)) for training, of_it in trainings.items()}
        made.append(Chart(next(iter(trainings.values()))[-1].machine, is_published, measured))
    return sorted(made, key=lambda chart: (chart.is_published, -chart.blocks))


def _gains(sessions: Sequence[Session]) -> dict[str, Gain]:
    """Return each profile's gain by all blocks. The intervals of a training share the error rate (Bonferroni)."""
    published = {name: ends for each in sessions if each.published for name, ends in each.published.speedups.items()}
    profiles = list(dict.fromkeys([*(name for session in sessions for name in session.names[1:]), *published]))
    gains = {}
    for profile in profiles:
        ratios = [ratio for session in sessions for ratio in session.ratios(profile)]
        losses = _pooled_losses([session.losses[profile] for session in sessions if profile in session.losses])
        if ratios:
            interval = speedup(ratios, ERROR_RATE / len(profiles), MARGIN)
            gains[profile] = Gain(math.exp(middle_of(ratios)), len(ratios), interval, losses)
        else:
            ratio, low, high = published[profile]
            gains[profile] = Gain(ratio, 0, Speedup(ratio, low, high, 0, MARGIN), losses)
    return gains


def _pooled_losses(agreements: Sequence[Agreement]) -> Agreement | None:
    """Return the worst of several sessions; None without one."""
    if not agreements:
        return None
    differences = [math.inf if each.difference is None else each.difference for each in agreements]
    worst = max(differences)
    return Agreement(worst if math.isfinite(worst) else None, all(each.agrees for each in agreements))


def failures(sessions: Sequence[Session]) -> list[Session]:
    """Return the sessions that failed and are the latest of their training and machine."""
    latest: dict[tuple[Machine, str], Session] = {}
    for session in sorted(sessions, key=lambda each: each.began):
        latest[replace(session.machine, name=""), session.training] = session
    return [session for session in latest.values() if session.failure]
