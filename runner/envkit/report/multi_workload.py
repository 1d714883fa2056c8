"""Profiles on several workloads in one run: which is faster where, and what was trained."""

from __future__ import annotations

from envkit.analysis import ranking
from envkit.analysis.result import Comparison, Result
from envkit.bench import quality
from envkit.bench.arms import Arm
from envkit.stats.verdict import Verdict


def trained(result: Result) -> list[list[str]]:
    """Return a row for each workload, by ``headings.TRAINED``: a step of the reference, and what it has learnt."""
    measured = {one.arm: one for one in result.measured}
    found = []
    for arm in result.study.references:
        one = measured.get(arm.name)
        if one is None or one.images_per_s is None:
            continue
        speed = [f"{one.images_per_s * one.step_s:.0f} {one.unit}", f"{one.step_s * 1000:.2f}",
                 f"{one.images_per_s:,.0f}"]  # fmt: skip
        loss = "-" if one.final_loss is None else f"{one.final_loss:.3f}"
        found.append([result.study.workload_of(arm), *speed, loss, quality.shown(one.quality) or "-"])
    return found


def winners(result: Result) -> dict[str, list[str]]:
    """For each workload the profiles that are known to be faster than its reference, the fastest first.

    One that was measured beside a load is not known to be. They are compared with the reference only, so it is unknown
    whether the first is faster than the second.
    """
    found: dict[str, list[str]] = {result.study.workload_of(arm): [] for arm in result.study.references}
    for arm, one in compared(result):
        if one.verdict == Verdict.FASTER and one.load is None:
            found[result.study.workload_of(arm)].append(arm.profile)
    return found


def everywhere(result: Result) -> list[str]:
    """The profiles that are faster on every workload."""
    fast = list(winners(result).values())
    return [name for name in fast[0] if all(name in names for names in fast[1:])] if fast else []


def compared(result: Result) -> list[tuple[Arm, Comparison]]:
    """In the order of the table: workload by workload, and of each the fastest first."""
    study, order = result.study, list(result.study.workloads)
    pairs = [(study.arm(one.arm), one) for one in result.comparisons]
    return sorted(pairs, key=lambda pair: (order.index(study.workload_of(pair[0])), -(ranking.ratio_of(pair[1]) or 0)))
