"""The report of an ablated profile: a table of its settings, and which of them matter."""

from __future__ import annotations

from envkit.analysis.intervals import SettingEffect
from envkit.analysis.result import Result
from envkit.bench.arms import Ablated
from envkit.messages import Message
from envkit.rendering import ratio, text
from envkit.report.messages import lines as messages
from envkit.report.messages import tables as in_tables
from envkit.report.messages.headings import EFFECTS
from envkit.report.parts import Row, Table
from envkit.stats.contribution import NO_DIFFERENCE, Contribution
from envkit.stats.interval import Speedup
from envkit.stats.verdict import Verdict

HEADER = ("setting", "alone", "in profile", "verdict")
# These hold for the setting together with the library that it needs.
WITH_LIBRARY = (Contribution.ALONE, Contribution.HELPS, Contribution.REPLACED)


def table(result: Result) -> Table:
    """Return a row for each setting."""
    rows = [
        [_shown(one.setting), _cell(one.alone), _cell(one.in_profile), words(result, one)] for one in result.ablation
    ]
    weights = [
        "bad" if one.contribution == Contribution.COSTS else "plain" if one.contribution in NO_DIFFERENCE else "good"
        for one in result.ablation
    ]
    study = result.study
    library = "LIBRARY + SETTING" if any(one.needs for one in study.ablated) else None
    note = in_tables.AblationColumns(study.reference.name, study.whole.name, library)
    return Table(HEADER, rows, (1, 2), weights, note)


def costs_in_profile(one: SettingEffect) -> bool:
    """Return whether the profile is faster without the setting, whatever its effect alone."""
    found = one.in_profile
    return found is not None and found.verdict == Verdict.SLOWER and not found.within_margin


def words(result: Result, one: SettingEffect) -> str:
    """Return what a setting does, in a few words."""
    if one.contribution == Contribution.EQUIVALENT:
        return text(in_tables.NoDifferenceAbove(result.study.stopping.margin))
    effects = EFFECTS.get(one.contribution.name)
    return effects[0] if effects else str(one.contribution)


def clauses(result: Result) -> tuple[messages.SettingsDo, ...]:
    """Return which settings matter: a clause for each kind, in the order of ``Contribution``."""
    found = []
    for kind, (of_one, of_several) in EFFECTS.items():
        contribution = Contribution[kind]
        alike = [one.setting for one in result.ablation if one.contribution == contribution]
        names = tuple(_shown(one) if contribution in WITH_LIBRARY else one.setting for one in alike)
        if names:
            found.append(messages.SettingsDo(names, of_several if names[1:] else of_one))
    return tuple(found)


def notes(result: Result) -> list[Row]:
    """Return which arms were measured once and stand for two."""
    same: list[Message] = []
    for one in result.study.ablated:
        alone, without = _shown(one) if one.needs else f"{one.setting} alone", f"without {one.setting}"
        roles = ((alone, one.alone), (without, one.without))
        same += [in_tables.SameArm(name, arm) for name, arm in roles if arm is not None and arm != name]
    return [Row("note", in_tables.MeasuredOnce(tuple(same)))] if same else []


def _shown(one: Ablated) -> str:
    return f"{one.needs} + {one.setting}" if one.needs else one.setting


def _cell(found: Speedup | None) -> str:
    return "-" if found is None else f"{ratio(found.ratio)}x ({ratio(found.low)} to {ratio(found.high)})"
