"""The interval of each contrast of a run, the arms that may be the best, and the effect of each setting of a profile.

References:
  J. C. Hsu: Simultaneous confidence intervals for all distances from the "best". Annals of Statistics 9 (1981).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace

from envkit.bench.arms import Ablated, Arm, Contrast, Role
from envkit.bench.decide import ENDED, PRECISE
from envkit.bench.run import Run
from envkit.stats.contribution import Contribution, contribution
from envkit.stats.interval import Speedup
from envkit.stats.sequential import at_end
from envkit.stats.verdict import Verdict


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
        return at_end(design, ratios, study.stopping.margin, stopped_early=run.ended == PRECISE)

    def may_be_best(self, arms: Collection[Arm]) -> list[Arm]:
        """Return which of ``arms`` can't be told from the fastest, that one first; none before the run has ended.

        Each arm is compared with the one of the highest speedup, in the blocks of both, and is out if it is slower.
        Each other may have that speedup, so comparisons with all others share the error rate, over all looks. The
        truly fastest arm is missing in at most 5% of runs (Hsu 1981). Bonferroni's inequality replaces Dunnett's
        critical values, which the signed-rank interval does not have.
        """
        run, design = self.run, self.run.design if self.run.ended in ENDED else None
        known = {arm: estimate.ratio for arm in arms if (estimate := self.of(arm, Role.EFFECT)) is not None}
        if design is None or not known:
            return []
        best, *others = sorted(known, key=lambda arm: -known[arm])
        shared = replace(design, comparisons=max(1, len(others)))
        near = [best]
        for arm in others:
            ratios = run.block_ratios(arm, reference=best)
            against = at_end(shared, ratios, run.study.stopping.margin, stopped_early=run.ended == PRECISE)
            if against is None or against.verdict != Verdict.SLOWER:
                near.append(arm)
        return near

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
