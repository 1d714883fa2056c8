"""The interval of each contrast of a run, the arms that may be the best, and the effects of a profile's settings."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass

from envkit.bench.arms import Ablated, Arm, Contrast, Role
from envkit.bench.decide import ENDED, PRECISE
from envkit.bench.run import Run
from envkit.stats.contribution import Contribution, contribution
from envkit.stats.interval import Speedup
from envkit.stats.selection import is_slower, with_best
from envkit.stats.sequential import at_end


@dataclass(frozen=True)
class Estimate:
    """A ratio with its interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Intervals:
    """The intervals of a run: of the contrasts between arms that are in effect, once it has ended."""

    run: Run
    in_effect: Collection[str]  # names of arms

    def speedup(self, contrast: Contrast | None) -> Speedup | None:
        """Return the reference's time over the arm's, both for one item; None from too few blocks."""
        run, study = self.run, self.run.study
        design = run.design if run.ended in ENDED else None
        if contrast is None or design is None or not contrast.pair <= set(self.in_effect):
            return None
        ratios = run.block_ratios(study.arm(contrast.arm), reference=study.arm(contrast.reference))
        return at_end(design, ratios, study.stopping.margin, run.ended == PRECISE or contrast.arm in run.dropped)

    def may_be_best(self, arms: Collection[Arm]) -> list[Arm]:
        """Return which of ``arms`` can't be told from the fastest, that one first; none before the run has ended.

        Arms that were dropped as slower than one of them are out. Each other is compared with the one of the highest
        speedup, in the blocks of both, and is out if it is slower. The truly fastest arm is missing in at most 5% of
        runs (``envkit.stats.selection``).
        """
        run, design = self.run, self.run.design if self.run.ended in ENDED else None
        speedups = {arm: estimate.ratio for arm in arms if (estimate := self.of(arm, Role.EFFECT)) is not None}
        ranked = sorted(speedups, key=lambda arm: -speedups[arm])
        among = {run.study.reference.name, *(arm.name for arm in arms)}
        slower_than = {name: event.arms[name] for name, event in run.dropped.items()}
        left = [arm for arm in ranked if slower_than.get(arm.name) not in among]
        if design is None or not left:
            return []
        best, *others = left
        shared, margin = with_best(design, len(speedups)), run.study.stopping.margin
        early = {arm for arm in left if run.ended == PRECISE or best.name in run.dropped or arm.name in run.dropped}
        against = {arm: at_end(shared, run.block_ratios(arm, reference=best), margin, arm in early) for arm in others}
        return [best, *(arm for arm in others if not is_slower(against[arm]))]

    def of(self, arm: Arm, role: Role) -> Speedup | None:
        """Return the same of an arm's contrast in a role."""
        return self.speedup(self.run.study.contrast(arm, role))

    def of_setting(self, setting: str, role: Role) -> Speedup | None:
        """Return the same of the contrast that is about a setting of an ablated profile."""
        return self.speedup(next((one for one in self.run.study.contrasts_of(role) if one.setting == setting), None))

    def estimate(self, arm: Arm, role: Role) -> Estimate | None:
        """Return the ratio of an arm's contrast in a role, divided as that says."""
        contrast = self.run.study.contrast(arm, role)
        found = self.speedup(contrast)
        if contrast is None or found is None:
            return None
        return Estimate(*(one / contrast.divisor for one in (found.ratio, found.low, found.high)))


@dataclass(frozen=True)
class SettingEffect:
    """The effect of one setting of an ablated profile.

    Speedups are None where an arm was not measured, or before the run has ended.
    """

    setting: Ablated
    alone: Speedup | None  # over the baseline, or over the library that it needs
    in_profile: Speedup | None  # of the whole profile over the profile without it
    contribution: Contribution

    def to_json(self) -> dict[str, object]:
        return {
            **asdict(self.setting),
            "worth_alone": self.alone and self.alone.to_json(),
            "worth_in_profile": self.in_profile and self.in_profile.to_json(),
            "contribution": str(self.contribution),
        }


def setting_effects(intervals: Intervals) -> list[SettingEffect]:
    """Return the effect of each setting of an ablated profile; none in other studies."""
    study = intervals.run.study
    effects = []
    for setting in study.ablated:
        whole = intervals.of(study.whole, Role.EFFECT)
        alone, in_profile = (intervals.of_setting(setting.setting, role) for role in (Role.ALONE, Role.IN_PROFILE))
        effects.append(SettingEffect(setting, alone, in_profile, contribution(whole, alone, in_profile)))
    return effects
