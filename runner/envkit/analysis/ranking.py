"""Many profiles in one run: the fastest first, and one line for what holds for most of them."""

from __future__ import annotations

import math
from dataclasses import replace

from envkit.analysis.result import Comparison, Result
from envkit.bench.arms import View
from envkit.checks.doctor.finding import Finding
from envkit.checks.messages import MoreAlike
from envkit.stats.verdict import Verdict

# What a verdict is for the user, where it is not plain.
WEIGHTS = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
# Up to so many are told one by one, in the order in which they were named.
FEW = 3


def many(result: Result) -> bool:
    """Whether there are more profiles than are told one by one."""
    return len(result.comparisons) > FEW


def by_speed(result: Result) -> bool:
    """Whether profiles stand in the order of their speed: that of one workload, beside one reference."""
    return many(result) and result.study.view not in (View.WORKLOADS, View.SETTINGS)


def ratio_of(comparison: Comparison) -> float | None:
    """The speedup, or None where none was worked out."""
    return comparison.speedup.ratio if comparison.speedup else comparison.single_ratio


def ranked(result: Result) -> list[Comparison]:
    """The comparisons: of many the fastest first, and those without a speedup last; else as they were named.

    Comparisons on several workloads keep their order too, workload by workload, and so do the parts of a profile.
    """
    if not by_speed(result):
        return result.comparisons
    return sorted(result.comparisons, key=lambda one: -(ratio_of(one) or -math.inf))


def order(result: Result) -> list[str]:
    """The names of all arms: of many the fastest first, with the reference where its 1 belongs; else as planned."""
    reference = result.study.reference.name
    if not by_speed(result):
        return [arm.name for arm in result.study.arms]
    names = [one.arm for one in ranked(result)]
    faster = sum(ratio > 1 for one in result.comparisons if (ratio := ratio_of(one)) is not None)
    return [*names[:faster], reference, *names[faster:]]


def weight(result: Result, name: str) -> str:
    """``good``, ``bad`` or ``plain``, for the row of the arm ``name``."""
    return next((weight_of(one) for one in result.comparisons if one.arm == name), "plain")


def weight_of(comparison: Comparison) -> str:
    """The same of a comparison: what holds only beside a load is neither good nor bad."""
    return WEIGHTS.get(comparison.verdict, "plain") if comparison.load is None else "plain"


def findings(result: Result) -> list[Finding]:
    """Return the findings; of many profiles, each kind once."""
    if not many(result) and result.study.view is not View.WORKLOADS:
        return result.findings
    by_kind: dict[str, list[Finding]] = {}
    for finding in result.findings:
        by_kind.setdefault(finding.code, []).append(finding)
    return [
        replace(first, seen=MoreAlike(first.seen, len(alike))) if alike else first for first, *alike in by_kind.values()
    ]
