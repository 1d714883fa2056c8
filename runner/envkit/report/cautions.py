"""Cautions: what speaks against using a result as it stands, beside the number that it concerns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from envkit.analysis import ranking
from envkit.analysis.image_differences import CUDA_OF_BUILD, Difference
from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import View
from envkit.checks.doctor.cpu_use_findings import FIX_FIRST
from envkit.checks.doctor.finding import Finding
from envkit.messages import Message
from envkit.profiles.environment import Environment, overrides_vendor
from envkit.profiles.profile import Profile
from envkit.rendering import text
from envkit.report import judgement
from envkit.report.messages import cautions as messages
from envkit.report.messages.headings import LOSSES_DIFFER
from envkit.report.parts import Row, labelled_once
from envkit.stats.verdict import Verdict

# Memory is worth a word from so many times the reference's, and so many bytes more.
NOTABLE_RATIO, NOTABLE_BYTES = 1.1, 32 * 2**20
# How long a quota may hold an arm back (seconds, over all samples) without a word.
NOTABLE_S = 0.1
# A drift is worth a line if chance alone shows one as clear this seldom.
DRIFT_P = 0.01


def of(
    comparison: Comparison, environment: Environment, peaks: tuple[float, float] | None, in_table: bool = False
) -> list[Message]:
    """Return the cautions on using the profile of a comparison.

    ``peaks`` of memory are those of the arm and of its reference, in bytes. In a table each arm has its own cautions.
    """
    cautions: list[Message] = []
    if judgement.losses_differ(comparison):
        assert comparison.losses is not None, "they were compared"
        cautions += [messages.LossesDiffer(finite(comparison.losses.largest_difference))] if in_table else []
    elif environment.may_change_results:
        cautions.append(messages.MayChangeResults())
    if overrides_vendor(environment.preload):
        cautions.append(messages.VendorCheckOverridden())
    ratio = memory_ratio(*peaks) if peaks is not None else None
    return [*cautions, *([messages.CostsMemory(ratio)] if ratio is not None else [])]


def of_profile(chosen: Profile) -> list[Message]:
    """Return the cautions on using a profile that was not measured yet."""
    cautions: list[Message] = [messages.MayChangeResults()] if chosen.numerics != "same" else []
    return [*cautions, *([messages.VendorCheckOverridden()] if overrides_vendor(chosen.preload) else [])]


def finite(number: float) -> float | None:
    """Return a number, or None for one that JSON does not have."""
    return number if math.isfinite(number) else None


def memory_ratio(peak: float, reference: float) -> float | None:
    """Return how many times the reference's memory an arm needs (peaks in bytes), if that is notably more."""
    return peak / reference if peak >= NOTABLE_RATIO * reference and peak - reference >= NOTABLE_BYTES else None


def rows(result: Result) -> list[Row]:
    """Return the cautions below the verdict: all of one profile, or those on the run as a whole.

    With many profiles, each has its own in the table.
    """
    study = result.study
    cautions: list[Message] = [messages.SyntheticData()] if result.synthetic else []
    unverified = (surroundings["inspection"]["unverified_packages"] for surroundings in result.engines.values())
    cautions += [messages.UnverifiedPackage(package) for package in unverified if package]
    cautions += [
        messages.NotSteady(arm, "--warmup-lines" if study.user_command else "--warmup-steps")
        for arm in result.lengths.unsteady
    ]
    cautions += [
        messages.HeldBackByQuota(measured.arm, measured.throttled_s)
        for measured in result.measured
        if measured.throttled_s > NOTABLE_S
    ]
    for arm in study.compared:
        cautions += _other_builds(arm.name, study.reference_of(arm).name, result.image_differences.get(arm.name, ()))
    compared = result.comparisons[:1] if study.view is View.SETTINGS else result.comparisons
    for comparison in () if result.side_by_side else compared:
        name, has_ratio = comparison.arm, ranking.ratio_of(comparison) is not None
        each = of(comparison, result.environments[name], result.peaks(name)) if has_ratio or len(compared) > 1 else []
        cautions += each if len(compared) == 1 else [messages.OfArm(name, caution) for caution in each]
    cautions += _drift(compared[0]) if len(compared) == 1 else []
    cautions += [] if study.at_once or study.view is View.CALIBRATION else _overstated(compared)
    rows = [Row("Caution", caution, "bad" if is_grave(caution) else "plain") for caution in cautions]
    findings = ranking.findings(result.findings, result.comparisons, study.view)
    rows += [
        Row("Caution", messages.Finding(one.code, one.seen, one.why, one.fix if one.code in FIX_FIRST else None))
        for one in findings if one.severity != "note"
    ]  # fmt: skip
    return labelled_once(rows)


def finding_document(finding: Finding) -> dict[str, object]:
    """Return a finding as plain data: its texts, and ``message``, which is what was seen as a code with fields."""
    texts = {"seen": text(finding.seen), "why": text(finding.why), "fix": text(finding.fix)}
    message = finding.seen.to_json() if isinstance(finding.seen, Message) else None
    return {"code": finding.code, "severity": finding.severity, **texts, "message": message}


def is_grave(message: Message) -> bool:
    """Return whether a caution is one on the results themselves."""
    return isinstance(message, messages.LossesDiffer | messages.SyntheticData | messages.UnverifiedPackage)


def legend(result: Result) -> tuple[dict[str, str], list[Message]]:
    """Return the marks of each comparison's cautions in the table, and what each mark means."""
    kinds: dict[str, Message] = {}
    marks: dict[str, list[str]] = {}
    for comparison in result.comparisons:
        arm = comparison.arm
        cautions = of(comparison, result.environments[arm], result.peaks(arm), in_table=result.side_by_side)
        for caution in cautions if ranking.ratio_of(comparison) else ():
            if isinstance(caution, messages.LossesDiffer) and comparison.verdict == Verdict.FASTER:
                continue  # the column "difference" has it
            shown = caution if isinstance(caution, messages.VendorCheckOverridden | messages.MayChangeResults) else None
            if shown is None:
                marks.setdefault(comparison.arm, []).append(_in_table(caution))
                continue
            kinds.setdefault(caution.code, shown)
            marks.setdefault(comparison.arm, []).append("abc"[list(kinds).index(caution.code)])
    return {arm: ", ".join(signs) for arm, signs in marks.items()}, list(kinds.values())


def _in_table(caution: Message) -> str:
    if isinstance(caution, messages.CostsMemory):
        return f"{caution.ratio:.1f}x memory"
    return LOSSES_DIFFER


def _other_builds(arm: str, reference: str, differences: Sequence[Difference]) -> list[Message]:
    """Return the caution that one of two images has a torch for CPUs alone."""
    build = next((difference for difference in differences if difference.what == CUDA_OF_BUILD), None)
    if build is None or None not in (build.reference, build.image):
        return []
    return [messages.OtherBuilds(arm, _built(build.image), reference, _built(build.reference))]


def _built(cuda: str | None) -> str:
    return f"with CUDA {cuda}" if cuda else "for CPUs alone"


def _drift(comparison: Comparison) -> list[Message]:
    if comparison.drift is not None and comparison.speedup is not None and comparison.drift.p_value < DRIFT_P:
        return [messages.SpeedupDrifted(1 + comparison.drift.change)]
    return []


def _overstated(comparisons: Sequence[Comparison]) -> list[Message]:
    """Return the caution that the largest gain is close to the noise: runs find such gains where noise adds.

    An arm that was dropped is never the largest, however fast it was at its look.
    """
    faster = (comparison for comparison in comparisons if comparison.verdict == Verdict.FASTER)
    largest = max(faster, key=ranking.place, default=None)
    if largest is None or largest.speedup is None or not largest.speedup.may_be_overstated:
        return []
    return [messages.MayBeOverstated(largest.speedup.low, largest.arm if len(comparisons) > 1 else None)]
