"""The report of an ablated profile: a table of its settings, and which of them matter."""

from __future__ import annotations

from collections.abc import Sequence

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
    margin = result.study.stopping.margin
    rows = [
        [_shown(effect.setting), _cell(effect.alone), _cell(effect.in_profile), words(effect, margin)]
        for effect in result.ablation
    ]
    weights = [
        "bad"
        if effect.contribution == Contribution.COSTS
        else "plain"
        if effect.contribution in NO_DIFFERENCE
        else "good"
        for effect in result.ablation
    ]
    study = result.study
    library = "LIBRARY + SETTING" if any(ablated.needs for ablated in study.ablated) else None
    note = in_tables.AblationColumns(study.reference.name, study.whole.name, library)
    return Table(HEADER, rows, (1, 2), weights, note)


def costs_in_profile(effect: SettingEffect) -> bool:
    """Return whether the profile is faster without the setting, whatever its effect alone."""
    in_profile = effect.in_profile
    return in_profile is not None and in_profile.verdict == Verdict.SLOWER and not in_profile.within_margin


def words(effect: SettingEffect, margin: float) -> str:
    """Return what a setting does, in a few words. A difference below ``margin`` does not matter."""
    if effect.contribution == Contribution.EQUIVALENT:
        return text(in_tables.NoDifferenceAbove(margin))
    effects = EFFECTS.get(effect.contribution.name)
    return effects[0] if effects else str(effect.contribution)


def clauses(effects: Sequence[SettingEffect]) -> tuple[messages.SettingsDo, ...]:
    """Return which settings matter: a clause for each kind, in the order of ``Contribution``."""
    clauses = []
    for kind, (of_one, of_several) in EFFECTS.items():
        contribution = Contribution[kind]
        alike = [effect.setting for effect in effects if effect.contribution == contribution]
        names = tuple(_shown(ablated) if contribution in WITH_LIBRARY else ablated.setting for ablated in alike)
        if names:
            clauses.append(messages.SettingsDo(names, of_several if names[1:] else of_one))
    return tuple(clauses)


def notes(settings: Sequence[Ablated]) -> list[Row]:
    """Return which arms were measured once and stand for two."""
    same: list[Message] = []
    for ablated in settings:
        alone, without = _shown(ablated) if ablated.needs else f"{ablated.setting} alone", f"without {ablated.setting}"
        roles = ((alone, ablated.alone), (without, ablated.without))
        same += [in_tables.SameArm(name, arm) for name, arm in roles if arm is not None and arm != name]
    return [Row("note", in_tables.MeasuredOnce(tuple(same)))] if same else []


def _shown(ablated: Ablated) -> str:
    return f"{ablated.needs} + {ablated.setting}" if ablated.needs else ablated.setting


def _cell(found: Speedup | None) -> str:
    return "-" if found is None else f"{ratio(found.ratio)}x ({ratio(found.low)} to {ratio(found.high)})"
