"""What a report says of a profile that was taken apart: a table of its settings, and which of them matter."""

from __future__ import annotations

from envkit.analysis.ablation import Worth
from envkit.analysis.summary import Summary
from envkit.bench.plan import Ablated
from envkit.report.parts import Row, Table
from envkit.stats.contribution import NO_DIFFERENCE, Contribution
from envkit.stats.interval import Speedup
from envkit.stats.verdict import Verdict

HEADER = ("setting", "alone", "in the profile", "verdict")
# What a clause of the first line says of one setting, and of several.
CLAUSES = {
    Contribution.ALONE: ("{} does it alone", "{} each do it alone"),
    Contribution.NEEDED: ("{} is needed", "{} are needed"),
    Contribution.TOGETHER: ("{} is worth something only together with others",
                            "{} are worth something only together with others"),
    Contribution.REPLACED: ("{} helps alone, and others make up for it", "{} help alone, and others make up for each"),
    Contribution.HELPS: ("{} helps alone", "{} each help alone"),
    Contribution.COSTS: ("{} costs time", "{} cost time"),
    Contribution.EQUIVALENT: ("{} makes no difference larger than {margin}",
                              "{} make no difference larger than {margin}"),
    Contribution.NOT_FOUND: ("{} makes no difference that was found", "{} make no difference that was found"),
}  # fmt: skip
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
    library = " (LIBRARY + SETTING: over that library alone)" if any(one.needs for one in plan.ablated) else ""
    alone = f"alone: its speedup over {plan.reference.name}{library}"
    lost = f"in the profile: that of {plan.whole.name} over the same without it"
    return Table(HEADER, rows, (1, 2), weights, f"{alone}; {lost}.")


def costs_in_profile(one: Worth) -> bool:
    """Whether the profile is faster without the setting, whatever that is worth alone."""
    found = one.in_profile
    return found is not None and found.verdict == Verdict.SLOWER and not found.within_margin


def words(summary: Summary, one: Worth) -> str:
    """What a setting does, in a few words."""
    if one.contribution == Contribution.EQUIVALENT:
        return f"makes no difference larger than {_margin(summary)}"
    return str(one.contribution)


def clauses(summary: Summary) -> list[str]:
    """Which settings matter: a clause for each kind, in the order of ``Contribution``."""
    found = []
    for kind, (of_one, of_several) in CLAUSES.items():
        alike = [one.setting for one in summary.ablation if one.contribution == kind]
        names = [_shown(one) if kind in WITH_LIBRARY else one.setting for one in alike]
        if names:
            text = of_several if names[1:] else of_one
            found.append(text.format(_listed(names), margin=_margin(summary)))
    return found


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
    return "-" if found is None else f"{found.ratio:.3f} ({found.low:.3f}-{found.high:.3f})"


def _margin(summary: Summary) -> str:
    return f"{summary.plan.stopping.margin * 100:g}%"


def _listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
