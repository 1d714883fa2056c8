"""The first line of every report: what was found, in plain English.

``25% faster`` always means 25% more steps in the same time, which is the speedup less 1. ``25% slower`` means 25% more
time for each step, which is 1 / speedup less 1. Both agree with the speedups that tables and other sentences have.
"""

from __future__ import annotations

from collections import Counter

from envkit.analysis import ranking
from envkit.analysis.load import Load
from envkit.analysis.summary import Comparison, Summary
from envkit.bench.calibration import is_calibration
from envkit.bench.plan import REFERENCE_PROFILE, Arm, Plan
from envkit.report import (
    ablation_wording,
    advice,
    epoch_ends,
    grid,
    instances_wording,
    scaling_wording,
    tables,
    wording,
)
from envkit.report.parts import Row
from envkit.report.wording import CONFIDENCE
from envkit.stats.verdict import Verdict

NOTHING_MEASURED = "no result: no sample was measured"


def headline(summary: Summary) -> Row:
    """The verdict in a sentence or two, without a label."""
    if grid.is_grid(summary.plan):
        return Row("", f"{_only(summary.course.load)}{_of_grid(summary)}")
    if not summary.comparisons:
        return Row("", f"{_only(summary.course.load)}{_of_reference(summary)}")
    if summary.plan.at_once:
        return _of_instances(summary)
    if len(summary.comparisons) > 1 and not summary.plan.ablated:
        return _of_many(summary)
    one = summary.comparisons[0]  # of a profile that is taken apart, the whole of it
    found = _said(summary, one)
    if found is None:
        return Row("", f"{_names(summary, one)[0]}: no result{why(summary, one)}", "bad")
    weight = "bad" if wording.learns_otherwise(summary, one) else ranking.weight_of(one)
    told = f"{_only(one.load)}{found}{_doubts(summary, one)}"
    return Row("", "; ".join([told, *ablation_wording.clauses(summary)]), weight)


def how_to_read(summary: Summary) -> list[Row]:
    """What the percentages of the first line mean, where it has any."""
    text = headline(summary).text
    if not any(f"% {verdict}" in text for verdict in ranking.WEIGHTS):
        return []
    if summary.plan.until:
        return [
            Row("read", "25% faster: the reference takes 25% more time to the target; 25% slower: the profile does")
        ]
    step = summary.plan.step_name
    return [Row("read", f"25% faster: 25% more {step}s per second; 25% slower: 25% more time a {step}")]


def share(part: float) -> str:
    """``12%``, and below ten ``7.5%``."""
    return f"{part:.1%}" if part < 0.0995 else f"{part:,.0%}"


def change(ratio: float) -> str:
    """A speedup as ``25% faster`` or ``25% slower``."""
    return f"{share(ratio - 1)} faster" if ratio >= 1 else f"{share(1 / ratio - 1)} slower"


def changed(ratio: float, low: float, high: float, than: str, to: str = "") -> str:
    """A speedup and its interval in words; where its ends lie on either side of 1, each says on which.

    ``to`` names a target that was to be reached.
    """
    ends = [change(end) for end in ((high, low) if ratio < 1 else (low, high))]
    if (low < 1) == (high < 1):
        ends = [end.partition(" ")[0] for end in ends]
    return f"{change(ratio)}{to} than {than} ({CONFIDENCE} interval {' to '.join(ends)})"


def _said(summary: Summary, one: Comparison) -> str | None:
    """The result of one comparison; None where there is none."""
    (who, other), found, single = _names(summary, one), one.speedup, one.single_ratio
    to = f" to {summary.plan.until}" if summary.plan.until else ""
    if found is None:
        each = "in one run each: no interval, no verdict"
        return f"{who} was {change(single)}{to} than {other}, {each}" if single else None
    if found.verdict in ranking.WEIGHTS:
        small = f", which is less than the {found.margin * 100:g}% that matter" if found.within_margin else ""
        return f"{who} is {changed(found.ratio, found.low, found.high, other, to)}{small}"
    most = f"at most {share(max(found.high, 1 / found.low) - 1)} either way"
    interval = f"({CONFIDENCE} interval {change(found.low)} to {change(found.high)})"
    return f"{found.words}{to} between {who} and {other}: {most} {interval}"


def _only(found: Load | None) -> str:
    """What comes before a result that holds only beside a load."""
    return "" if found is None else f"Only {found.words}: "


def _doubts(summary: Summary, one: Comparison) -> str:
    """What speaks against a result, in the same line."""
    if wording.learns_otherwise(summary, one):
        return ", but its losses differ: it changes what is learnt"
    unverified = any(measured.unverified for measured in summary.measured if measured.arm == one.arm)
    return ", though it could not be verified that it was in effect" if unverified else ""


def why(summary: Summary, one: Comparison) -> str:
    """Why a comparison has no result: who was not in effect, or whose worker failed and how."""
    pair = (one.arm, summary.plan.reference_of(summary.plan.arm(one.arm)).name)
    for measured in summary.not_in_effect if one.verdict == Verdict.NOT_IN_EFFECT else ():
        if measured.arm in pair:
            missed = next(check for check in measured.checks if not check.holds)
            seen = f"expected {wording.shown(missed.expected)}, {wording.seen(missed.seen)}"
            return f": {measured.arm} is NOT IN EFFECT ({missed.key}: {seen})"
    if one.verdict == Verdict.FAILED and summary.failures:
        return f": the worker of {summary.failures[-1]['arm']} {summary.failures[-1]['problem']}"
    return wording.no_result(summary, one)


def _of_many(summary: Summary) -> Row:
    """The best that is known to be faster, with its interval, and how many are faster, slower or neither."""
    found = ranking.ranked(summary)
    things = f"{len(found)} {_things(summary)}"
    sound = [one for one in found if ranking.ratio_of(one) and not wording.learns_otherwise(summary, one)]
    sound.sort(key=lambda one: ranking.ratio_of(one) or 0, reverse=True)
    counted = Counter({str(verdict): 0 for verdict in ranking.WEIGHTS})  # these come first
    counted.update(_kind(summary, one) for one in found)
    counts = ", ".join(f"{number} {kind}" for kind, number in counted.items() if number)
    if not any(map(ranking.ratio_of, found)):
        reasons = {why(summary, one) for one in found}
        return Row("", f"no result for any of {things}{reasons.pop() if len(reasons) == 1 else f': {counts}'}", "bad")
    if summary.plan.one_run_each:
        return Row("", f"best of {things}: {_said(summary, [*sound, *found][0])}")
    faster = [one for one in sound if one.verdict == Verdict.FASTER]
    worth = sorted((one for one in faster if one.load is None), key=lambda one: not advice.is_worth_it(one))
    if faster and not worth:
        return Row("", f"{_only(faster[0].load)}none of {things} is recommended: {counts}")
    if worth:
        best = f"{_said(summary, worth[0])}{_doubts(summary, worth[0])}"
        return Row("", f"best of {things}: {best}; {counts}", "good")
    return Row("", f"none of {things} is known to be faster than {_names(summary, found[0])[1]}: {counts}")


def _of_instances(summary: Summary) -> Row:
    """Of several at once, those that do most: beside one process of the baseline, and of their own profile."""
    several = [one for one in summary.comparisons if summary.plan.arm(one.arm).instances]
    best = max(several, key=lambda one: ranking.ratio_of(one) or 0.0)
    found = instances_wording.headline(summary, summary.plan.arm(best.arm))
    if found is None:
        return Row("", f"{best.arm}: no result{why(summary, best)}", "bad")
    weight = "bad" if wording.learns_otherwise(summary, best) else ranking.weight_of(best)
    return Row("", f"{_only(best.load)}{found}{_doubts(summary, best)}", weight)


def _kind(summary: Summary, one: Comparison) -> str:
    if one.speedup is None:
        return str(one.verdict) if one.verdict == Verdict.NOT_IN_EFFECT else "without a result"
    if wording.learns_otherwise(summary, one):
        return "with other losses"
    if one.verdict == Verdict.EQUIVALENT:
        return f"equal within {one.speedup.margin * 100:g}%"
    kind = "undecided" if one.verdict == Verdict.NOT_FOUND else str(one.verdict)
    return f"{kind} under load" if one.load is not None and one.verdict in ranking.WEIGHTS else kind


def _things(summary: Summary) -> str:
    """What is compared, for a number of them."""
    if not summary.plan.across:
        return f"{tables.header(summary)[0]}s"
    one = len({arm.profile for arm in summary.plan.compared}) == 1
    return "workloads" if one else "pairs of a profile and a workload"


def _of_reference(summary: Summary) -> str:
    """Of one profile alone: beside one process, where it was measured on several ranks."""
    plan = summary.plan
    who = _named(plan, plan.reference)
    for one in summary.scaling if plan.single_processes else ():
        if plan.weak and (found := one.efficiency) is not None:
            efficiency = f"{found.ratio:.1%} ({CONFIDENCE} interval {found.low:.1%} to {found.high:.1%})"
            return f"{plan.scaling}: {who} has an efficiency of {efficiency} beside {scaling_wording.share(plan)}"
        if (found := one.speedup) is not None:
            return f"{who} is {changed(found.ratio, found.low, found.high, '1 process of it here')}"
    reference = plan.reference.profile if plan.across else plan.reference.name
    return f"Only {reference} was measured: there is nothing to compare." if summary.samples else NOTHING_MEASURED


def _of_grid(summary: Summary) -> str:
    if measured := grid.cells(summary):
        best, worst = (choose(measured, key=lambda cell: cell.seconds) for choose in (min, max))
        least = f"{best.seconds:.2f} {grid.UNIT}, and the slowest takes {worst.seconds:.2f}"
        return f"the fastest of {len(measured)} settings of the loader here: {best.named}, with {least}"
    if ends := epoch_ends.cells(summary):
        first, last = (choose(ends, key=epoch_ends.by_image) for choose in (min, max))
        least = f"{first.epoch_s:.2f} s per epoch; to begin one takes {first.begin_s:.2f} s of it"
        slowest = f"the slowest, {last.named}, takes {last.epoch_s:.2f} s, and {last.begin_s:.2f} s of it to begin"
        return f"the fastest of {len(ends)} settings of the loader here: {first.named}, with {least}; {slowest}"
    return NOTHING_MEASURED


def _names(summary: Summary, one: Comparison) -> tuple[str, str]:
    """What is compared and with what, as a sentence has them; the second with where that is."""
    plan = summary.plan
    arm = plan.arm(one.arm)
    reference = plan.reference_of(arm)
    if plan.across:
        return f"{arm.profile} on {plan.workload_of(arm)}", f"{_profile(reference.profile)} there"
    if is_calibration(plan):
        return f"{_named(plan, reference)} again", f"{_named(plan, reference)} here"
    return _named(plan, arm), f"{_named(plan, reference)} here"


def _named(plan: Plan, arm: Arm) -> str:
    ranks = f" on {plan.ranks_of(arm)} ranks" if plan.ranks_of(arm) > 1 else ""
    return f"{'the image ' if plan.compares_images else ''}{_profile(arm.name)}{ranks}"


def _profile(name: str) -> str:
    return f"the {name}" if name == REFERENCE_PROFILE else name


def title(summary: Summary) -> str:
    """What was compared with what."""
    plan = summary.plan
    if grid.is_grid(plan):
        return f"{len(plan.arms)} settings of the loader under {plan.reference.profile}"
    if plan.ablated:
        return f"{plan.whole.name} taken apart: {len(plan.ablated)} settings"
    names = list(dict.fromkeys(arm.profile if plan.across else arm.name for arm in plan.subjects))
    what = ", ".join(names) if len(names) <= ranking.FEW or plan.at_once else f"{len(names)} profiles"
    where = f" on {len(plan.workloads)} workloads" if plan.across else ""
    reference = plan.reference.profile if plan.across else plan.reference.name
    scaling = f", {plan.scaling}" if plan.weak else ""
    return f"{what}{where}{f' against {reference}' if summary.comparisons else ''}{scaling}"
