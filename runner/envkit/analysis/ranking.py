"""Many profiles in one run: the fastest first, and one line for what holds for most of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from envkit.analysis.result import Comparison
from envkit.bench.arms import Arm, View
from envkit.checks.doctor.finding import Finding
from envkit.checks.messages import MoreAlike
from envkit.stats.verdict import Verdict

# What a verdict is for the user, where it is not plain.
WEIGHTS = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
# Up to so many are told one by one, in the order in which they were named.
FEW = 3


def many(comparisons: Sequence[Comparison]) -> bool:
    """Return whether there are more profiles than reports describe one by one."""
    return len(comparisons) > FEW


def by_speed(comparisons: Sequence[Comparison], view: View) -> bool:
    """Return whether profiles stand in the order of their speed: that of one workload, beside one reference."""
    return many(comparisons) and view not in (View.WORKLOADS, View.SETTINGS)


def ratio_of(comparison: Comparison) -> float | None:
    """Return the speedup, or None without one."""
    return comparison.speedup.ratio if comparison.speedup else comparison.single_ratio


def place(comparison: Comparison) -> tuple[bool, bool, float]:
    """Return a key that is highest for the best: an arm that was dropped is slower than one that was not.

    One that needs more memory than the limit comes last.
    """
    return comparison.over_memory is None, comparison.dropped is None, ratio_of(comparison) or 0.0


def ranked(comparisons: Sequence[Comparison], view: View) -> list[Comparison]:
    """Return the comparisons: of many the fastest first, and those without a speedup last; else as they were named.

    Comparisons on several workloads keep their order too, workload by workload, and so do the parts of a profile.
    """
    if not by_speed(comparisons, view):
        return [*comparisons]
    return sorted(comparisons, key=lambda one: -(ratio_of(one) or -math.inf))


def order(comparisons: Sequence[Comparison], arms: Sequence[Arm], view: View) -> list[str]:
    """Return the names of all arms, the first of which is the reference.

    If there are many, the fastest come first, with the reference where its 1 belongs; else they stand as planned.
    """
    if not by_speed(comparisons, view):
        return [arm.name for arm in arms]
    names = [comparison.arm for comparison in ranked(comparisons, view)]
    faster = sum(ratio > 1 for comparison in comparisons if (ratio := ratio_of(comparison)) is not None)
    return [*names[:faster], arms[0].name, *names[faster:]]


def weight(comparisons: Sequence[Comparison], name: str) -> str:
    """Return ``good``, ``bad`` or ``plain``, for the row of the arm ``name``."""
    return next((weight_of(comparison) for comparison in comparisons if comparison.arm == name), "plain")


def weight_of(comparison: Comparison) -> str:
    """Return the weight of a comparison.

    One that holds only beside a load, or of an arm above the limit on memory, is neither good nor bad.
    """
    is_plain = comparison.load is not None or comparison.over_memory is not None
    return "plain" if is_plain else WEIGHTS.get(comparison.verdict, "plain")


def findings(each: Sequence[Finding], comparisons: Sequence[Comparison], view: View) -> list[Finding]:
    """Return the findings; of many profiles or several workloads, each kind once."""
    if not many(comparisons) and view is not View.WORKLOADS:
        return [*each]
    by_kind: dict[str, list[Finding]] = {}
    for finding in each:
        by_kind.setdefault(finding.code, []).append(finding)
    return [
        replace(first, seen=MoreAlike(first.seen, len(alike))) if alike else first for first, *alike in by_kind.values()
    ]
