"""Many profiles in one run: the fastest first, and one line for what holds for most of them."""

from __future__ import annotations

import math

from envkit.analysis.summary import Comparison, Summary
from envkit.stats.verdict import Verdict

# What a verdict is for the user, where it is not plain.
WEIGHTS = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
# What a table adds to a verdict that holds only beside a load.
UNDER_LOAD = ", under load"
# Up to so many are told one by one, in the order in which they were named.
FEW = 3


def many(summary: Summary) -> bool:
    """Whether there are more profiles than are told one by one."""
    return len(summary.comparisons) > FEW


def by_speed(summary: Summary) -> bool:
    """Whether profiles stand in the order of their speed: that of one workload, beside one reference."""
    return many(summary) and not summary.plan.across and not summary.plan.ablated


def ratio_of(comparison: Comparison) -> float | None:
    """The speedup, or None where none was worked out."""
    return comparison.speedup.ratio if comparison.speedup else comparison.single_ratio


def ranked(summary: Summary) -> list[Comparison]:
    """The comparisons: of many the fastest first, and those without a speedup last; else as they were named.

    Those on several workloads stay as they were named too, workload by workload, and so do the parts of a profile.
    """
    if not by_speed(summary):
        return summary.comparisons
    return sorted(summary.comparisons, key=lambda one: -(ratio_of(one) or -math.inf))


def order(summary: Summary) -> list[str]:
    """The names of all arms: of many the fastest first, with the reference where its 1 belongs; else as planned."""
    reference = summary.plan.reference.name
    if not by_speed(summary):
        return [arm.name for arm in summary.plan.arms]
    names = [one.arm for one in ranked(summary)]
    faster = sum(ratio > 1 for one in summary.comparisons if (ratio := ratio_of(one)) is not None)
    return [*names[:faster], reference, *names[faster:]]


def header(summary: Summary) -> list[str]:
    return ["profile", "speedup", "95% interval", "verdict", f"ms/{summary.plan.step_name}"]


def cells(summary: Summary) -> list[list[str]]:
    """A row for each arm, by `order`. A profile that may change numerics has a star."""
    compared = {one.arm: one for one in summary.comparisons}
    step_s = {one.arm: one.step_s for one in summary.measured}
    rows = []
    for name in order(summary):
        time = f"{step_s[name] * 1000:.2f}" if name in step_s else "-"
        one = compared.get(name)
        star = " *" if summary.environments[name].numerics != "same" else ""
        rows.append([name + star, *(found_cells(one) if one else _uncompared(summary, name)), time])
    return rows


def _uncompared(summary: Summary, name: str) -> list[str]:
    return ["1", "", "reference"] if name == summary.plan.reference.name else ["-", "", ""]


def found_cells(comparison: Comparison) -> list[str]:
    """Ratio, interval and a verdict that is short enough for a table."""
    found, ratio = comparison.speedup, ratio_of(comparison)
    if found is None:
        return ["-" if ratio is None else f"{ratio:.3f}", "", comparison.words]
    if found.verdict in (Verdict.FASTER, Verdict.SLOWER):
        verdict = found.words.upper()
    elif found.verdict == Verdict.EQUIVALENT:
        verdict = f"no difference > {found.margin * 100:g}%"
    else:
        verdict = found.words
    verdict += UNDER_LOAD * (comparison.load is not None)
    return [f"{found.ratio:.3f}", f"{found.low:.3f} to {found.high:.3f}", verdict]


def weight(summary: Summary, name: str) -> str:
    """``good``, ``bad`` or ``plain``, for the row of the arm ``name``."""
    return next((weight_of(one) for one in summary.comparisons if one.arm == name), "plain")


def weight_of(comparison: Comparison) -> str:
    """The same of a comparison: what holds only beside a load is neither good nor bad."""
    return WEIGHTS.get(comparison.verdict, "plain") if comparison.load is None else "plain"


def findings(summary: Summary) -> list[dict[str, str]]:
    """The findings; of many profiles, each kind once."""
    if not many(summary) and not summary.plan.across:
        return summary.findings
    by_kind: dict[str, list[dict[str, str]]] = {}
    for finding in summary.findings:
        by_kind.setdefault(finding["code"], []).append(finding)
    more = {code: f" (and {len(alike) - 1} more like this)" if alike[1:] else "" for code, alike in by_kind.items()}
    return [{**alike[0], "seen": alike[0]["seen"] + more[code]} for code, alike in by_kind.items()]


def losses(summary: Summary) -> list[str]:
    """What became of the losses of all profiles, but for those that differ where they should not."""
    known = {one.arm: one.losses for one in summary.comparisons if one.losses is not None}
    plan = summary.plan
    others = [arm.name for arm in plan.compared if plan.workload_of(arm) != plan.workload_of(plan.reference_of(arm))]
    time = "whole trainings" if plan.epochs else "times per image"
    apart = [f"not compared where something else is trained ({', '.join(others)}): {time} are"] if others else []
    if not known:
        return apart
    steps = next(iter(known.values())).steps
    equal = [arm for arm, found in known.items() if found.largest_difference == 0]
    own = plan.user_command is not None
    how = "equal within the last printed digit" if own else f"equal to the last bit over {steps} steps"
    said = [f"{how}: {_names(equal, len(known))}"] if equal else []
    near = {arm: found.largest_difference for arm, found in known.items() if found.agree and arm not in equal}
    if near:
        most = f"{max(near.values()):.1e} of their value at most"
        single = max(known[arm].own_difference or 0.0 for arm in near)  # 0 of the kit's workloads, whose samples repeat
        or_chance = f", or no more than single samples do ({single:.1e})" if single else ""
        said.append(f"differ by rounding{or_chance}, {most}: {_names([*near], len(known))}")
    for arm, found in known.items():
        if not found.agree and summary.environments[arm].numerics != "same" and math.isfinite(found.largest_difference):
            said.append(f"of {arm}, which may change numerics (*), differ by {found.largest_difference:.1e} at most")
    return [*said, *apart]


def _names(some: list[str], everyone: int) -> str:
    """A few by name, more by their number."""
    if len(some) == everyone:
        return f"all {everyone} profiles"
    return ", ".join(some) if len(some) <= FEW else f"{len(some)} of {everyone} profiles"
