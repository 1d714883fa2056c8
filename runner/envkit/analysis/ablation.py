"""A profile that was taken apart: what each of its settings is worth alone, and what all lose without it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from envkit.analysis.intervals import Intervals
from envkit.bench.arms import Ablated, Role
from envkit.stats.contribution import Contribution, contribution
from envkit.stats.interval import Speedup


@dataclass(frozen=True)
class Worth:
    """One setting. Speedups are None where an arm was not measured, or before the run has ended."""

    setting: Ablated
    alone: Speedup | None  # over the baseline, or over the library that it needs
    in_profile: Speedup | None  # of the whole profile over the profile without it
    contribution: Contribution

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self.setting),
            "worth_alone": self.alone and self.alone.to_json(),
            "worth_in_profile": self.in_profile and self.in_profile.to_json(),
            "contribution": str(self.contribution),
        }


def taken_apart(intervals: Intervals) -> list[Worth]:
    """Each setting of the profile that is taken apart, if one is."""
    study = intervals.run.study
    found = []
    for one in study.ablated:
        whole = intervals.of(study.whole, Role.EFFECT)
        alone, in_profile = (intervals.of_setting(one.setting, role) for role in (Role.ALONE, Role.IN_PROFILE))
        found.append(Worth(one, alone, in_profile, contribution(whole, alone, in_profile)))
    return found
