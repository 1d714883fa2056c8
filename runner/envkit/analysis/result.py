"""Summarise a record as plain data: per arm, compared, proven or not. Reports only print this."""

from __future__ import annotations

import math
import statistics as basic
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from envkit.analysis.course import CUT_SHORT, Course, course
from envkit.analysis.findings import ArmSamples, findings
from envkit.analysis.gpu_readings import GpuReadings, readings
from envkit.analysis.image_differences import Difference, of_run
from envkit.analysis.intervals import Intervals, SettingEffect, setting_effects
from envkit.analysis.learning_curves import LearningCurve, learning_curve, reached, target_of
from envkit.analysis.load import InDisturbed, Load, in_disturbed, load, neighbours
from envkit.analysis.noise import disturbed_arms, disturbed_blocks, interference_by_block, reference_kernel_range
from envkit.analysis.race import Racer, racers
from envkit.analysis.sample_times import Sample, sample_times
from envkit.analysis.scaling import Scaled, ScaledInstances, scaled, scaled_instances
from envkit.bench import dataset_messages as _of_data  # noqa: F401  from_json knows those that were imported
from envkit.bench.arms import Arm, Role, View
from envkit.bench.decide import ENDED, FAILED, PRECISE
from envkit.bench.events import (
    Calibration,
    Dropped,
    Failure,
    LeftOut,
    Lengths,
    Longer,
    OtherPrograms,
    ReferenceKernel,
    WarmUp,
)
from envkit.bench.events import Sample as Recorded
from envkit.bench.losses import Losses
from envkit.bench.memory_limit import OverMemory, is_unknown, over_memory
from envkit.bench.problems import restored
from envkit.bench.room import need
from envkit.bench.run import Run
from envkit.bench.study import Study
from envkit.checks.doctor.finding import Finding
from envkit.checks.effect import Check
from envkit.checks.sample_effect import set_by_the_command
from envkit.common.codec import finite, finite_items
from envkit.engines.measurement import probe
from envkit.messages import Message, from_json
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection, Surroundings
from envkit.stats.bootstrap import Bootstrap, bootstrap
from envkit.stats.drift import Drift, drift
from envkit.stats.interval import Speedup, ranks_outside
from envkit.stats.power import interval_scale
from envkit.stats.sequential import Design, at_end, design, reported_rate
from envkit.stats.verdict import Verdict
from envkit.worker.fashion_mnist import SYNTHETIC


@dataclass(frozen=True)
class Measured:
    """One arm's samples. Times are medians over samples, in seconds; counts are medians per timed step."""

    arm: str
    samples: int
    step_s: float
    images_per_s: float | None  # of a user's command it is not known
    system_share: float  # of its CPU time
    faults_per_step: float  # of a user's command: those of a run
    peak_memory_bytes: float
    throttled_s: float  # summed over the CPUs
    training_s: float
    quality: dict[str, float]  # the figures of a test where one was made
    final_loss: float | None  # that of the last step; of a user's command where its losses are read
    checks: list[Check]
    not_observed: dict[str, object] | None = None  # a worker's message, as JSON, on what could not be seen of it
    set_by_itself: dict[str, str] = field(default_factory=dict)  # performance variables
    unit: str = "images"  # what images_per_s counts
    cpu_s: float = 0.0  # of a user's command: that of a run
    system_s: float = 0.0  # the kernel's part of it

    @property
    def accuracy(self) -> float | None:
        return self.quality.get("accuracy")

    @property
    def in_effect(self) -> bool:
        return all(checked.holds for checked in self.checks)

    @property
    def unverified(self) -> list[Check]:
        """Return what is expected and could not be told: it is neither in effect nor not."""
        return [checked for checked in self.checks if not checked.verified]


@dataclass(frozen=True)
class Departure:
    """An arm was dropped after so many complete blocks, as it is slower than another arm."""

    blocks: int
    slower_than: str | None  # None: its peak memory is above the limit


@dataclass(frozen=True)
class Comparison:
    """One arm against its reference."""

    arm: str
    verdict: Verdict
    speedup: Speedup | None = None
    single_ratio: float | None = None  # of one run each, in the place of a speedup
    losses: Losses | None = None
    without_interference: Speedup | None = None  # without blocks in which either was disturbed, where others are enough
    load: Load | None = None  # beside which alone it holds: most blocks were disturbed, and the others don't show it
    in_disturbed: InDisturbed | None = None  # where the speedup of disturbed blocks is another one
    beside: Load | None = None  # other programs that disturbed the median sample and took a CPU or more
    bootstrap: Bootstrap | None = None
    deviation: float | None = None  # the standard deviation of a block's log ratio
    total_ratio: float | None = None  # all of the reference's timed seconds over all of the arm's, for equal work
    scale: float | None = None  # the noise that the interval's width shows, in such deviations (stats.power)
    spans_blocks: bool = False  # whether the interval reaches from the lowest block's ratio to the highest
    drift: Drift | None = None  # how that ratio changed in the run
    dropped: Departure | None = None  # where the arm left the run early
    over_memory: OverMemory | None = None  # where its peak memory is above the limit of the study

    @property
    def words(self) -> str:
        """The verdict in words, with the margin where that is a part of it."""
        return self.speedup.words if self.speedup else str(self.verdict)

    def to_json(self) -> dict[str, object]:
        """Plain data, with verdicts in words.

        It lacks what only plans the next run or words the report, and the departure, which the run's document has.
        """
        unlisted = ("scale", "spans_blocks", "dropped", "over_memory")
        return {
            **{name: value for name, value in asdict(self).items() if name not in unlisted},
            "verdict": self.words,
            "speedup": self.speedup and self.speedup.to_json(),
            "without_interference": self.without_interference and self.without_interference.to_json(),
        }


@dataclass(frozen=True)
class Result:
    """The result of a run, as its record has it."""

    study: Study
    engines: dict[str, Surroundings]  # by Arm.target
    data_source: Message
    environments: dict[str, Environment]
    command: list[str]  # as it was typed
    cwd: str  # where that was
    lengths: Lengths  # of samples, with the commands that start workers; none are fixed of a run that ended before
    measured: list[Measured]
    comparisons: list[Comparison]
    samples: list[Sample]
    complete_blocks: int  # with a sample of each arm that was not dropped before
    interference: dict[int, list[Message]]  # by block: what disturbed it from outside
    disturbed_arms: dict[int, set[str]]  # by block: the arms whose sample was disturbed
    reference_kernel_range_s: tuple[float, float] | None  # of the other blocks, where that is much (analysis.noise)
    design: Design | None
    left_out: dict[str, int]  # by workload: the steps of each sample that don't count, timed or not
    reference_drift: Drift | None  # how the reference's own time changed
    seconds_per_block: float  # with the starts of the workers
    calibration: Calibration | None
    findings: list[Finding]
    failures: list[Failure]
    removed_variables: list[str]
    allowed_variables: list[str]
    not_measured: dict[str, Message]  # why a matrix left profiles out
    ended: str | None
    image_differences: dict[str, list[Difference]]
    scaling: list[Scaled] = field(default_factory=list)
    gpus: list[GpuReadings] = field(default_factory=list)
    ablation: list[SettingEffect] = field(default_factory=list)  # the settings of a profile that is taken apart
    instances: list[ScaledInstances] = field(default_factory=list)
    learning: list[LearningCurve] = field(default_factory=list)  # of full trainings
    may_be_best: list[str] = field(default_factory=list)  # arms that can't be told from the fastest, that one first
    race: list[Racer] = field(default_factory=list)  # of a race, the fastest first
    memory_unknown: list[str] = field(default_factory=list)  # arms of unknown peak memory: the limit is not applied
    course: Course = field(default_factory=Course)

    @property
    def synthetic(self) -> bool:
        return self.study.data_of(self.study.reference) == SYNTHETIC

    @property
    def not_in_effect(self) -> list[Measured]:
        """Return the arms whose settings were not in effect. A race goes on without such an arm, and says so there."""
        return [] if self.study.is_race else [measured for measured in self.measured if not measured.in_effect]

    @property
    def not_reached(self) -> list[LearningCurve]:
        """Return the arms in which a training did not reach its target."""
        return [curve for curve in self.learning if curve.to_target and curve.to_target.seconds is None]

    @property
    def side_by_side(self) -> bool:
        """Return whether several profiles are compared, each of them with its cautions in a row of a table."""
        return len(self.comparisons) > 1 and self.study.view is not View.SETTINGS and not self.study.at_once

    @property
    def dropped(self) -> dict[str, Departure]:
        """Return when each arm that was dropped left the run, by its name."""
        return {comparison.arm: comparison.dropped for comparison in self.comparisons if comparison.dropped}

    @property
    def over_memory(self) -> list[OverMemory]:
        """Return the arms whose peak memory is above the limit of the study."""
        return [comparison.over_memory for comparison in self.comparisons if comparison.over_memory]

    def peaks(self, arm: str) -> tuple[float, float] | None:
        """Return the peak memory of an arm and of its reference, in bytes.

        None if one is unknown, or they do not compare: of two images, of ranks, or of several at once.
        """
        study = self.study
        known = {measured.arm: measured.peak_memory_bytes for measured in self.measured}
        peak, reference = known.get(arm), known.get(study.reference_of(study.arm(arm)).name)
        if not peak or not reference or study.at_once or study.view is View.IMAGES or study.distributed:
            return None
        return peak, reference

    def inspection(self, arm: Arm) -> Inspection:
        """Return the inspection of the image that ``arm`` ran in, from before it ran."""
        return self.engines[arm.target]["inspection"]

    def to_json(self) -> dict[str, object]:
        """Return what a script needs."""
        return {
            "reference": self.study.reference.name,
            "references": {arm.name: self.study.reference_of(arm).name for arm in self.study.compared},
            "comparisons": [finite(comparison.to_json()) for comparison in self.comparisons],
            "interference": {block: [one.to_json() for one in found] for block, found in self.interference.items()},
            "reference_kernel_range_s": self.reference_kernel_range_s,
            "design": self.design and {key: asdict(self.design)[key] for key in ("planned", "looks", "comparisons")},
            "warm_up_steps": self.lengths.warm_up,
            "unsteady": self.lengths.unsteady,
            "skipped_steps": self.lengths.skipped_steps,
            "reference_drift": self.reference_drift and asdict(self.reference_drift),
            "calibration": self.calibration,
            "measured": [
                {**finite_items(asdict(measured)), "in_effect": measured.in_effect, "accuracy": measured.accuracy}
                for measured in self.measured
            ],
            "synthetic_data": self.synthetic,
            "data_source": self.data_source.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
            "scaling": [finite(asdict(one)) for one in self.scaling],
            "instances": [finite(one.to_json()) for one in self.instances],
            "gpus": [asdict(gpu) for gpu in self.gpus],
            "settings": [effect.to_json() for effect in self.ablation],
            "learning_curves": [asdict(curve) for curve in self.learning],
            "failures": [
                {"block": failure.block, "arm": failure.arm, "problem": failure.problem} for failure in self.failures
            ],
            "may_be_best": self.may_be_best,
            "race": [asdict(racer) for racer in self.race],
            "dropped": {name: asdict(departure) for name, departure in self.dropped.items()},
            "over_memory": [{**asdict(excess), "share": excess.share} for excess in self.over_memory],
            "memory_unknown": self.memory_unknown,
            "not_measured": {name: reason.to_json() for name, reason in self.not_measured.items()},
            "ended": self.ended,
            **self.course.to_json(),
            "study": self.study.to_json(),
            "engines": self.engines,
            "image_differences": {arm: [asdict(one) for one in found] for arm, found in self.image_differences.items()},
        }


def conclude(run: Run) -> Result:
    """Return what a run shows, whether it was completed or not."""
    first, study, ended = run.beginning, run.study, run.ended
    environments = {name: Environment.from_json(document) for name, document in first.environments.items()}
    samples, kernels, left_out = run.samples(), run.all(ReferenceKernel), run.first(LeftOut)
    by_arm = {arm: of_arm for arm in study.arms if (of_arm := run.samples(arm))}
    measured = {
        arm.name: _measured(arm, environments[arm.name], first.allowed_variables, of_arm, run.skipped_steps)
        for arm, of_arm in by_arm.items()
    }
    with_symptoms = study.references if study.user_command is None else ()
    processes = [
        ArmSamples(arm.name, environments[arm.name], of_arm, run.inspection(arm), arm in with_symptoms)
        for arm, of_arm in by_arm.items()
    ]
    interference = interference_by_block(samples)
    curves = (learning_curve(arm.name, of_arm, target_of(study.until)) for arm, of_arm in by_arm.items())
    limited = study.compared if study.stopping.max_memory is not None else []
    over = [excess for arm in limited if (excess := over_memory(run, arm)) is not None]
    comparisons = _with_departures([_comparison(run, arm, measured) for arm in study.compared], run.dropped, over)
    intervals = Intervals(run, {one.arm for one in measured.values() if one.in_effect})
    needed = need(run) if ended in CUT_SHORT else None
    beside = None if study.contrasts else load(samples, len({each.block for each in samples}), run.first(OtherPrograms))
    return Result(
        study=study,
        engines={target: first.surroundings(target) for target in first.engines},
        data_source=from_json(first.data_source),
        environments=environments,
        command=first.command,
        cwd=first.cwd,
        lengths=run.lengths or Lengths(warm_up={}, unsteady=[], together=1, skipped_steps=0, commands=first.commands),
        measured=list(measured.values()),
        comparisons=comparisons,
        samples=sample_times(run.events, run.skipped_steps),
        complete_blocks=run.whole_blocks,
        interference=interference,
        disturbed_arms=disturbed_arms(samples),
        reference_kernel_range_s=reference_kernel_range(kernels, interference),
        design=run.design,
        left_out={name: length.warmup_steps + run.skipped_steps for name, length in study.workloads.items()},
        reference_drift=drift([basic.fmean(steps) for steps in run.timed_steps(study.reference)]),
        seconds_per_block=_seconds_per_block([*samples, *kernels]),
        calibration=first.calibration,
        findings=[*map(Finding.of_json, first.findings), *findings(processes)],
        failures=run.all(Failure),
        removed_variables=[*first.removed_variables],
        allowed_variables=[*first.allowed_variables],
        not_measured={name: restored(one) for name, one in left_out.profiles.items()} if left_out else {},
        ended=ended,
        image_differences=of_run(run) if study.view is View.IMAGES else {},
        scaling=_scaling(intervals, measured),
        instances=_instances(intervals),
        may_be_best=_may_be_best(intervals, comparisons),
        memory_unknown=[arm.name for arm in limited if is_unknown(run, arm)],
        race=racers(run) if study.is_race else [],
        gpus=[found for arm in study.arms if (found := readings(arm.name, run.samples(arm)))],
        ablation=setting_effects(intervals),
        learning=[curve for curve in curves if curve is not None],
        course=course(study.arms, samples, run.all(WarmUp), run.first(Longer), needed, beside),
    )


def _may_be_best(intervals: Intervals, comparisons: Sequence[Comparison]) -> list[str]:
    """Return the arms that may be called the best: of those that a user can rely on, if one of them is faster."""
    study = intervals.run.study
    sound = [
        comparison
        for comparison in comparisons
        if comparison.speedup and not (comparison.load or comparison.beside or comparison.over_memory)
        and (comparison.losses is None or comparison.losses.agree)
    ]  # fmt: skip
    if study.view is not View.EFFECTS or all(comparison.verdict != Verdict.FASTER for comparison in sound):
        return []
    return [arm.name for arm in intervals.may_be_best([study.arm(comparison.arm) for comparison in sound])]


def _scaling(intervals: Intervals, measured: Mapping[str, Measured]) -> list[Scaled]:
    """Scaling of each arm with several ranks that is in effect, compared with one process in effect."""
    study = intervals.run.study
    if any(one.name in measured and one.name not in intervals.in_effect for one in study.single_processes):
        return []
    return [scaled(intervals, arm) for arm in study.distributed if arm.name in intervals.in_effect]


def _instances(intervals: Intervals) -> list[ScaledInstances]:
    """Return the throughput of each arm of several instances, if it and its references are in effect."""
    study, roles = intervals.run.study, (Role.EFFECT, Role.INSTANCES)
    beside = {arm: [one.pair for role in roles if (one := study.contrast(arm, role))] for arm in study.at_once}
    sound = {*intervals.in_effect}
    shown = [arm for arm, pairs in beside.items() if {arm.name}.union(*pairs) <= sound]
    return [scaled_instances(intervals, arm) for arm in shown]


def _seconds_per_block(in_blocks: Sequence[Recorded | ReferenceKernel]) -> float:
    """Return how long a block takes, with the starts of its workers; 0 where none is complete."""
    blocks = len({event.block for event in in_blocks})
    return sum(event.worker_seconds for event in in_blocks) / blocks if blocks else 0.0


def _with_departures(
    comparisons: Sequence[Comparison], dropped: Mapping[str, Dropped], over: Sequence[OverMemory]
) -> list[Comparison]:
    """Return comparisons with when each arm left, and its peak memory if that is ``over`` the limit."""
    departures = {
        name: Departure(event.block, None if event.over_memory else event.arms[name]) for name, event in dropped.items()
    }
    excess_of = {excess.arm: excess for excess in over}
    return [
        replace(
            comparison,
            dropped=departures.get(comparison.arm),
            over_memory=excess_of.get(comparison.arm) if comparison.verdict != Verdict.NOT_IN_EFFECT else None,
        )
        for comparison in comparisons
    ]


def _comparison(run: Run, arm: Arm, measured: dict[str, Measured]) -> Comparison:
    study, ended = run.study, run.ended
    reference, target = study.reference_of(arm), target_of(study.until)
    if not all(measured[name].in_effect for name in (reference.name, arm.name) if name in measured):
        return Comparison(arm.name, Verdict.NOT_IN_EFFECT)
    losses = run.losses(arm)
    ratios = run.block_ratios(arm)
    if ended == FAILED:
        return Comparison(arm.name, Verdict.FAILED, losses=losses)
    if not all(reached(of_one, target) for of_one in (run.samples(reference), run.samples(arm))):
        return Comparison(arm.name, Verdict.NOT_REACHED, losses=losses)
    if study.one_run_each and ratios:
        return Comparison(arm.name, Verdict.ONE_RUN_EACH, single_ratio=math.exp(ratios[0]), losses=losses)
    planned = run.design or design(len(ratios), len(study.compared))
    if ended not in ENDED:
        return Comparison(arm.name, Verdict.NOT_ENDED, losses=losses)
    is_early = ended == PRECISE or arm.name in run.dropped
    speedup = at_end(planned, ratios, study.stopping.margin, is_early)
    blocks, others = set(run.complete_blocks(arm)), run.first(OtherPrograms)
    samples = [sample for sample in run.samples(reference, arm) if sample.block in blocks]
    hit = disturbed_blocks(samples)
    quiet = run.block_ratios(arm, without=set(hit))
    without = at_end(planned, quiet, study.stopping.margin, stopped_early=False) if blocks & hit.keys() else None
    beside = neighbours(samples, others) if speedup else None
    of_sides = [run.comparable_steps(side, blocks) for side in (reference, arm)]
    other = in_disturbed(quiet, run.block_ratios(arm, without=blocks - hit.keys()), len(study.compared))
    same_verdict = speedup is not None and without is not None and without.verdict == speedup.verdict
    return Comparison(
        arm.name,
        verdict=speedup.verdict if speedup else Verdict.TOO_FEW_SAMPLES,
        speedup=speedup,
        losses=losses,
        without_interference=without,
        load=load(samples, len(blocks), others) or beside if speedup and not (same_verdict and other is None) else None,
        in_disturbed=other,
        beside=beside,
        bootstrap=bootstrap(*of_sides),
        deviation=basic.stdev(ratios) if len(ratios) > 1 else None,
        total_ratio=_total_ratio(*of_sides),
        scale=interval_scale(ratios),
        spans_blocks=speedup is not None and _spans_blocks(planned, speedup.blocks, is_early),
        drift=drift([math.exp(ratio) for ratio in ratios]),
    )


def _spans_blocks(fixed: Design, blocks: int, stopped_early: bool) -> bool:
    """Return whether the interval of so many blocks can be no narrower than from the lowest ratio to the highest."""
    return ranks_outside(blocks, reported_rate(fixed, blocks, stopped_early)) == 1


def _total_ratio(of_reference: Sequence[Sequence[float]], of_arm: Sequence[Sequence[float]]) -> float | None:
    """Return the ratio of the total times, from the seconds of each sample's steps; None without a sample."""
    totals = [sum(map(basic.fmean, side)) for side in (of_reference, of_arm)]
    return totals[0] / totals[1] if totals[1] else None


def _steps(sample: Recorded) -> float:
    """How many steps a sample's usage is of; what a user's command used is known of all of it alone."""
    return sample.usage_steps or (1 if sample.images_per_step is None else len(sample.step_s))


def _measured(
    arm: Arm, environment: Environment, kept: dict[str, str], samples: Sequence[Recorded], skipped: int
) -> Measured:
    images = samples[0].images_per_step
    step_s = basic.median(basic.fmean(sample.step_s[skipped:]) for sample in samples)
    usage = [sample.usage for sample in samples]
    losses = [sample.known_losses[-1] for sample in samples if sample.known_losses]
    checked = [sample.checks for sample in samples]
    # of several samples the one that is least in effect, and least of which was verified, is shown
    worst = max(checked, key=lambda of: (sum(not one.holds for one in of), sum(not one.verified for one in of)))
    return Measured(
        arm=arm.name,
        samples=len(samples),
        step_s=step_s,
        images_per_s=None if images is None else images / step_s,
        system_share=basic.median(one.system_s / (one.system_s + one.user_s or 1) for one in usage),
        faults_per_step=basic.median(one.usage.minor_faults / _steps(one) for one in samples),
        peak_memory_bytes=basic.median(one.peak_memory_bytes for one in samples),
        throttled_s=sum(one.throttled_s for one in usage),
        training_s=basic.median(one.seconds for one in samples),
        quality=_quality(samples),
        final_loss=basic.median(losses) if losses else None,
        checks=worst,
        not_observed=next((dict(message) for one in samples if (message := probe(one.evidence, "not_observed"))), None),
        set_by_itself=dict(pair for one in samples for pair in set_by_the_command(environment, one, kept).items()),
        unit=samples[0].unit or "images",
        cpu_s=basic.median((one.usage.system_s + one.usage.user_s) / _steps(one) for one in samples),
        system_s=basic.median(one.usage.system_s / _steps(one) for one in samples),
    )


def _quality(samples: Sequence[Recorded]) -> dict[str, float]:
    """The medians of the figures of those samples that were tested."""
    tested = [quality for sample in samples if (quality := sample.quality)]
    return {name: basic.median(one[name] for one in tested) for name in (tested[0] if tested else ())}
