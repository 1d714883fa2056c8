"""A profile that was taken apart: what each of its settings is worth alone, and what all lose without it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from envkit.bench.plan import Ablated
from envkit.bench.run import Run
from envkit.stats.contribution import Contribution, contribution
from envkit.stats.interval import Speedup
from envkit.stats.sequential import at_end


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


def taken_apart(run: Run, in_effect: Collection[str], ended: bool, stopped_early: bool) -> list[Worth]:
    """Each setting of the profile that is taken apart, if one is; speedups are of arms that were ``in_effect``."""
    plan, fixed = run.plan, run.design if ended else None

    def speedup(arm: str | None, beside: str | None) -> Speedup | None:
        if fixed is None or arm not in in_effect or beside not in in_effect:
            return None
        ratios = run.block_ratios(plan.arm(str(arm)), reference=plan.arm(str(beside)))
        return at_end(fixed, ratios, plan.stopping.margin, stopped_early)

    found = []
    for one in plan.ablated:
        whole = speedup(plan.whole.name, plan.reference.name)
        alone, in_profile = speedup(one.alone, one.beside), speedup(plan.whole.name, one.without)
        found.append(Worth(one, alone, in_profile, contribution(whole, alone, in_profile)))
    return found
