"""Cautions: what speaks against using a result as it stands, beside the number that it concerns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from envkit.analysis import ranking
from envkit.analysis.image_differences import CUDA_OF_BUILD, Difference
from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import View
from envkit.checks.doctor.cpu_use_findings import FIX_FIRST
from envkit.checks.doctor.finding import Finding
from envkit.messages import Message
from envkit.profiles.profile import Profile
from envkit.rendering import text
from envkit.report import judgement
from envkit.report.messages import cautions as messages
from envkit.report.messages.headings import LOSSES_DIFFER
from envkit.report.parts import Row
from envkit.stats.verdict import Verdict

# Memory is worth a word from so many times the reference's, and so many bytes more.
NOTABLE_RATIO, NOTABLE_BYTES = 1.1, 32 * 2**20
# How long a quota may hold an arm back (seconds, over all samples) without a word.
NOTABLE_S = 0.1
# A drift is worth a line if chance alone shows one as clear this seldom.
DRIFT_P = 0.01


def of(result: Result, one: Comparison) -> list[Message]:
    """Return the cautions on using the profile of a comparison."""
    study, environment = result.study, result.environments[one.arm]
    found: list[Message] = []
    if judgement.losses_differ(one):
        assert one.losses is not None, "they were compared"
        in_table = result.side_by_side
        found += [messages.LossesDiffer(finite(one.losses.largest_difference))] if in_table else []
    elif judgement.may_change_results(environment):
        found.append(messages.MayChangeResults())
    if judgement.overrides_vendor(environment.preload):
        found.append(messages.VendorCheckOverridden())
    if not study.at_once and study.view is not View.IMAGES and not study.distributed:
        peaks = {measured.arm: measured.peak_memory_bytes for measured in result.measured}
        ratio = memory_ratio(peaks.get(one.arm), peaks.get(study.reference_of(study.arm(one.arm)).name))
        found += [] if ratio is None else [messages.CostsMemory(ratio)]
    return found


def of_profile(chosen: Profile) -> list[Message]:
    """Return the cautions on using a profile that was not measured yet."""
    found: list[Message] = [messages.MayChangeResults()] if chosen.numerics != "same" else []
    return [*found, *([messages.VendorCheckOverridden()] if judgement.overrides_vendor(chosen.preload) else [])]


def finite(number: float) -> float | None:
    """Return a number, or None for one that JSON does not have."""
    return number if math.isfinite(number) else None


def memory_ratio(peak: float | None, reference: float | None) -> float | None:
    """Return how many times the reference's memory an arm needs (peaks in bytes), if that is notably more."""
    if not peak or not reference:
        return None
    return peak / reference if peak >= NOTABLE_RATIO * reference and peak - reference >= NOTABLE_BYTES else None


def rows(result: Result) -> list[Row]:
    """Return the cautions below the verdict: all of one profile, or those on the run as a whole.

    With many profiles, each has its own in the table.
    """
    study = result.study
    found: list[Message] = [messages.SyntheticData()] if result.synthetic else []
    unverified = (surroundings["inspection"]["unverified_packages"] for surroundings in result.engines.values())
    found += [messages.UnverifiedPackage(package) for package in unverified if package]
    found += [
        messages.NotSteady(arm, "--warmup-lines" if study.user_command else "--warmup-steps") for arm in result.unsteady
    ]
    found += [
        messages.HeldBackByQuota(one.arm, one.throttled_s) for one in result.measured if one.throttled_s > NOTABLE_S
    ]
    for arm in study.compared:
        found += _other_builds(arm.name, study.reference_of(arm).name, result.image_differences.get(arm.name, ()))
    compared = result.comparisons[:1] if study.view is View.SETTINGS else result.comparisons
    if len(compared) == 1:
        found += of(result, compared[0]) if compared[0].speedup or compared[0].single_ratio else []
        found += _drift(compared[0])
    elif not result.side_by_side:
        for one in compared:
            found += [messages.OfArm(one.arm, caution) for caution in of(result, one)]
    said = [Row("Caution", one, "bad" if is_grave(one) else "plain") for one in found]
    findings = [
        one
        for one in ranking.findings(result.findings, result.comparisons, result.study.view)
        if one.severity != "note"
    ]
    said += [
        Row("Caution", messages.Finding(one.code, one.seen, one.why, one.fix if one.code in FIX_FIRST else None))
        for one in findings
    ]
    return [row if number == 0 else replace(row, label="") for number, row in enumerate(said)]


def finding_document(one: Finding) -> dict[str, object]:
    """Return a finding as plain data: its texts, and ``message``, which is what was seen as a code with fields."""
    texts = {"seen": text(one.seen), "why": text(one.why), "fix": text(one.fix)}
    message = one.seen.to_json() if isinstance(one.seen, Message) else None
    return {"code": one.code, "severity": one.severity, **texts, "message": message}


def is_grave(one: Message) -> bool:
    """Return whether a caution is one on the results themselves."""
    return isinstance(one, messages.LossesDiffer | messages.SyntheticData | messages.UnverifiedPackage)


def legend(result: Result) -> tuple[dict[str, str], list[Message]]:
    """Return the marks of each comparison's cautions in the table, and what each mark means."""
    kinds: dict[str, Message] = {}
    marks: dict[str, list[str]] = {}
    for one in result.comparisons:
        for caution in of(result, one) if ranking.ratio_of(one) else ():
            if isinstance(caution, messages.LossesDiffer) and one.verdict == Verdict.FASTER:
                continue  # the column "difference" has it
            shown = caution if isinstance(caution, messages.VendorCheckOverridden | messages.MayChangeResults) else None
            if shown is None:
                marks.setdefault(one.arm, []).append(_in_table(caution))
                continue
            kinds.setdefault(caution.code, shown)
            marks.setdefault(one.arm, []).append("abc"[list(kinds).index(caution.code)])
    return {arm: ", ".join(found) for arm, found in marks.items()}, list(kinds.values())


def _in_table(caution: Message) -> str:
    if isinstance(caution, messages.CostsMemory):
        return f"{caution.ratio:.1f}x memory"
    return LOSSES_DIFFER


def _other_builds(arm: str, reference: str, differences: Sequence[Difference]) -> list[Message]:
    """Return the caution that one of two images has a torch for CPUs alone."""
    build = next((one for one in differences if one.what == CUDA_OF_BUILD), None)
    if build is None or None not in (build.reference, build.image):
        return []
    return [messages.OtherBuilds(arm, _built(build.image), reference, _built(build.reference))]


def _built(cuda: str | None) -> str:
    return f"with CUDA {cuda}" if cuda else "for CPUs alone"


def _drift(one: Comparison) -> list[Message]:
    if one.drift is not None and one.speedup is not None and one.drift.p_value < DRIFT_P:
        return [messages.SpeedupDrifted(1 + one.drift.change)]
    return []
