"""What a report says of a profile that was taken apart: a table of its settings, and which of them matter."""

from __future__ import annotations

from envkit.analysis.ablation import Worth
from envkit.analysis.summary import Summary
from envkit.bench.plan import Ablated
from envkit.rendering import ratio
from envkit.report.messages import lines as messages
from envkit.report.parts import Row, Table
from envkit.stats.contribution import NO_DIFFERENCE, Contribution
from envkit.stats.interval import Speedup
from envkit.stats.verdict import Verdict

HEADER = ("setting", "alone", "in profile", "verdict")
# What a clause on one setting says, and on several.
CLAUSES = {
    Contribution.ALONE: ("gives the speedup alone", "each give the speedup alone"),
    Contribution.NEEDED: ("is needed", "are needed"),
    Contribution.TOGETHER: ("helps only together with others", "help only together with others"),
    Contribution.REPLACED: ("helps alone, but others replace it", "help alone, but others replace each"),
    Contribution.HELPS: ("helps alone", "each help alone"),
    Contribution.COSTS: ("costs time", "cost time"),
    Contribution.EQUIVALENT: ("makes no relevant difference", "make no relevant difference"),
    Contribution.NOT_FOUND: ("has no effect that was found", "have no effect that was found"),
}
# Of these what is said holds for the setting with the library that it needs.
WITH_LIBRARY = (Contribution.ALONE, Contribution.HELPS, Contribution.REPLACED)


def table(summary: Summary) -> Table:
    """A row for each setting."""
    rows = [
        [_shown(one.setting), _cell(one.alone), _cell(one.in_profile), words(summary, one)] for one in summary.ablation
    ]
    weights = [
        "bad" if one.contribution == Contribution.COSTS else "plain" if one.contribution in NO_DIFFERENCE else "good"
        for one in summary.ablation
    ]
    plan = summary.plan
    library = " (LIBRARY + SETTING: over that library)" if any(one.needs for one in plan.ablated) else ""
    alone = f"alone: speedup over {plan.reference.name}{library}"
    return Table(HEADER, rows, (1, 2), weights, f"{alone}; in profile: {plan.whole.name} over it without the setting")


def costs_in_profile(one: Worth) -> bool:
    """Whether the profile is faster without the setting, whatever that is worth alone."""
    found = one.in_profile
    return found is not None and found.verdict == Verdict.SLOWER and not found.within_margin


def words(summary: Summary, one: Worth) -> str:
    """What a setting does, in a few words."""
    if one.contribution == Contribution.EQUIVALENT:
        return f"no difference above {summary.plan.stopping.margin * 100:g}%"
    return CLAUSES[one.contribution][0] if one.contribution in CLAUSES else str(one.contribution)


def clauses(summary: Summary) -> tuple[messages.SettingsDo, ...]:
    """Return which settings matter: a clause for each kind, in the order of ``Contribution``."""
    found = []
    for kind, (of_one, of_several) in CLAUSES.items():
        alike = [one.setting for one in summary.ablation if one.contribution == kind]
        names = tuple(_shown(one) if kind in WITH_LIBRARY else one.setting for one in alike)
        if names:
            found.append(messages.SettingsDo(names, of_several if names[1:] else of_one))
    return tuple(found)


def notes(summary: Summary) -> list[Row]:
    """What was measured once and stands for two."""
    same = []
    for one in summary.plan.ablated:
        alone, without = _shown(one) if one.needs else f"{one.setting} alone", f"without {one.setting}"
        roles = ((alone, one.alone), (without, one.without))
        same += [f"{name} is {arm}" for name, arm in roles if arm not in (None, name)]
    return [Row("note", f"measured once: {'; '.join(same)}")] if same else []


def _shown(one: Ablated) -> str:
    return f"{one.needs} + {one.setting}" if one.needs else one.setting


def _cell(found: Speedup | None) -> str:
    return "-" if found is None else f"{ratio(found.ratio)}x ({ratio(found.low)} to {ratio(found.high)})"
