"""Profiles on several workloads in one run: one table that says which wins where."""

from __future__ import annotations

from envkit.analysis import ranking
from envkit.analysis.losses import Losses
from envkit.analysis.summary import Comparison, Summary
from envkit.bench import quality
from envkit.bench.plan import Arm
from envkit.report.parts import Row
from envkit.stats.verdict import Verdict

HEADER = ("workload", "profile", "speedup", "95% interval", "verdict", "losses")
TRAINED = ("workload", "a step", "ms", "/s", "loss", "what was learnt")


def rows(summary: Summary) -> list[list[str]]:
    """A row for each comparison, workload by workload, by HEADER; a star is at what may change numerics."""
    found = []
    for arm, one in compared(summary):
        star = " *" if summary.environments[arm.name].numerics != "same" else ""
        cells = [summary.plan.workload_of(arm), arm.profile + star, *ranking.found_cells(one), _losses(one.losses)]
        found.append(cells)
    return found


def trained(summary: Summary) -> list[list[str]]:
    """For each workload what a step of the reference is and takes, and how well it has learnt, by TRAINED."""
    measured = {one.arm: one for one in summary.measured}
    found = []
    for arm in summary.plan.references:
        one = measured.get(arm.name)
        if one is None or one.images_per_s is None:
            continue
        speed = [f"{one.images_per_s * one.step_s:.0f} {one.unit}", f"{one.step_s * 1000:.2f}",
                 f"{one.images_per_s:,.0f}"]  # fmt: skip
        loss = "-" if one.final_loss is None else f"{one.final_loss:.3f}"
        found.append([summary.plan.workload_of(arm), *speed, loss, quality.shown(one.quality) or "-"])
    return found


def winners(summary: Summary) -> dict[str, list[str]]:
    """For each workload the profiles that are known to be faster than its reference, the fastest first.

    One that was measured beside a load is not known to be. They are compared with the reference only, so nobody knows
    whether the first is faster than the second.
    """
    found: dict[str, list[str]] = {summary.plan.workload_of(arm): [] for arm in summary.plan.references}
    for arm, one in compared(summary):
        if one.verdict == Verdict.FASTER and one.load is None:
            found[summary.plan.workload_of(arm)].append(arm.profile)
    return found


def wins(summary: Summary) -> list[Row]:
    """Which profile wins where, in a sentence for each of several workloads; none before anything was worked out."""
    if not summary.plan.across or not any(one.speedup for one in summary.comparisons):
        return []
    said = []
    for workload, names in winners(summary).items():
        if names:
            others = f"; faster too: {', '.join(names[1:])}" if names[1:] else ""
            said.append(f"{workload}: {names[0]}{others}")
        else:
            said.append(f"{workload}: no profile is known to be faster than {summary.plan.reference.profile}")
    return [Row("" if number else "wins", text) for number, text in enumerate(said)]


def everywhere(summary: Summary) -> list[str]:
    """The profiles that are faster on every workload."""
    fast = list(winners(summary).values())
    return [name for name in fast[0] if all(name in names for names in fast[1:])] if fast else []


def compared(summary: Summary) -> list[tuple[Arm, Comparison]]:
    """In the order of the table: workload by workload, and of each the fastest first."""
    plan, order = summary.plan, list(summary.plan.workloads)
    pairs = [(plan.arm(one.arm), one) for one in summary.comparisons]
    return sorted(pairs, key=lambda pair: (order.index(plan.workload_of(pair[0])), -(ranking.ratio_of(pair[1]) or 0)))


def _losses(losses: Losses | None) -> str:
    if losses is None:
        return "-"
    if losses.largest_difference == 0:
        return "equal"
    return f"~{losses.largest_difference:.0e}" if losses.agree else "DIFFER"
