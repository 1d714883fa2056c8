"""Findings about the processes of a run, its metric readings, and what its commands printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from envkit.advice.symptoms import of_sample
from envkit.analysis import finding_messages as messages
from envkit.bench.events import Sample
from envkit.checks import sample_effect
from envkit.checks.complaints import complaints
from envkit.checks.doctor import diagnose_process
from envkit.checks.doctor.cpu_use_findings import in_all_arms, trainer_of
from envkit.checks.doctor.finding import Finding, Level, Situation
from envkit.engines.measurement import Measurement
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.worker.user_command.metric import shown

UNRELATED_COMPLAINT = "unrelated-complaint"


class ArmSamples(NamedTuple):
    """The samples of an arm, the environment that they ran in, and what its processes had of the machine."""

    arm: str
    environment: Environment
    samples: Sequence[Sample]
    inspection: Inspection  # with the part of the CPUs that each of its processes has
    has_symptoms: bool  # its usage shows why training is slow: no profile and no start of a command is in it


def findings(arms: Sequence[ArmSamples]) -> list[Finding]:
    """Return what the samples of each arm show to be wrong."""
    by_arm: list[tuple[str, Finding]] = []
    for one in arms:
        middle = sorted(one.samples, key=lambda sample: sample.usage.minor_faults)[len(one.samples) // 2]
        symptoms = of_sample(middle)
        situation = Situation(
            one.inspection["facts"], one.inspection["fingerprint"], one.environment, trainer_of(one.samples[0]),
            symptoms=symptoms if one.has_symptoms and symptoms.is_long_enough else None,
        )  # fmt: skip
        by_arm += [(one.arm, finding) for finding in diagnose_process(situation)]
        by_arm += [(one.arm, finding) for finding in metric_readings(one.samples)]
    printed = [(one.environment, sample) for one in arms for sample in one.samples]
    return in_all_arms(by_arm, len(arms)) + unrelated_complaints(printed)


def unrelated_complaints(samples: Sequence[tuple[Environment, Measurement]]) -> list[Finding]:
    """Return a finding if libraries complained of something that no profile sets, as those of other commands do.

    Each sample comes with the environment that it ran in.
    """
    lines = dict.fromkeys(line for _, sample in samples for line in complaints(sample.stderr))
    for environment, sample in samples:
        related = {*complaints(sample.stderr)} - {*sample_effect.unrelated_complaints(environment, sample)}
        lines = {line: None for line in lines if line not in related}
    if not lines:
        return []
    first, *more = lines
    seen = messages.UnrelatedComplaint(first, len(more) or None)
    return [_finding(UNRELATED_COMPLAINT, "note", seen)]


def metric_readings(samples: Sequence[Sample]) -> list[Finding]:
    """Return what is doubtful about the readings in an arm's samples."""
    each = (_rank_lines(samples), _unmatched_lines(samples), _cover(samples), _rounding(samples))
    return [finding for finding in each if finding is not None]


def _rank_lines(samples: Sequence[Sample]) -> Finding | None:
    """Return which rank's lines were read if a launcher marks them, or else that each rank printed each step."""
    mark, ranks = next((sample.rank_lines for sample in samples if sample.rank_lines), (None, 0))
    if mark is None:
        return None
    if mark:
        return _finding("rank-lines", "note", messages.RankLines(shown(mark), ranks))
    return _finding("repeated-lines", "warn", messages.RepeatedLines(ranks))


def _unmatched_lines(samples: Sequence[Sample]) -> Finding | None:
    counts = [sample.unmatched_lines for sample in samples if sample.unmatched_lines]
    if not counts:
        return None
    seen = messages.UnmatchedLines(sum(lines for lines, _ in counts), shown(counts[0][1]))
    return _finding("unmatched-lines", "warn", seen)


def _cover(samples: Sequence[Sample]) -> Finding | None:
    """Return that readings sum to far more or far less than the time in which they were printed."""
    cover = next((sample.readings_cover for sample in samples if sample.readings_cover), None)
    if cover is None:
        return None
    total, elapsed, unit = cover.sum_s, cover.elapsed_s, cover.fits or None
    if total > elapsed:
        return _finding("readings-too-long", "warn", messages.ReadingsTooLong(total, elapsed))
    seen = messages.ReadingsTooShort(total / elapsed, unit)
    return Finding("readings-too-short", "note", seen, messages.reason("readings-too-short"), messages.CheckUnit(unit))


def _rounding(samples: Sequence[Sample]) -> Finding | None:
    """Return that numbers are rounded so coarsely that a difference may be lost or made by it."""
    rounding = [sample.readings_rounding for sample in samples if sample.readings_rounding is not None]
    return _finding("readings-rounded", "warn", messages.ReadingsRounded(max(rounding))) if rounding else None


def _finding(code: str, severity: Level, seen: Message) -> Finding:
    return Finding(code, severity, seen, messages.reason(code), messages.remedy(code))
