"""Several trainings at once: what all of them do in a second, beside one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envkit.analysis.scaling import speedup_over
from envkit.bench.plan import Arm
from envkit.bench.run import Run
from envkit.stats.interval import Speedup


@dataclass(frozen=True)
class AtOnce:
    """One arm that so many ``instances`` train at once; None is what too few blocks, or no such arm, leave unknown."""

    arm: str
    instances: int
    over_reference: Speedup | None  # the items per second of all together, over those of one process of the baseline
    over_one_process: Speedup | None  # the same, over those of one process under its profile, where that is another

    def to_json(self) -> dict[str, Any]:
        return {
            "arm": self.arm,
            "instances": self.instances,
            "over_reference": self.over_reference and self.over_reference.to_json(),
            "over_one_process": self.over_one_process and self.over_one_process.to_json(),
        }


def at_once(run: Run, arm: Arm, ended: bool, stopped_early: bool) -> AtOnce:
    """Return what the samples of ``arm`` say; ratios only of a run that has ``ended``."""
    plan = run.plan
    beside = (plan.reference_of(arm), plan.alone(arm)) if ended else (None, None)
    ratios = (speedup_over(run, arm, one, stopped_early) for one in beside)
    return AtOnce(arm.name, arm.instances or 1, *ratios)
