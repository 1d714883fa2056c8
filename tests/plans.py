"""Plans for tests: every field has a usual value, and a test names those that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from envkit.bench.plan import MARGIN, Arm, Plan, StoppingRule, WorkloadSpec

STOPPING = {"budget_s": 240.0, "blocks": 0, "precision": 0.04, "margin": MARGIN, "timeout_s": 60.0}
TRAINING = {"warmup_steps": 1, "steps": 3, "data": "/data"}


def plan_of(arms: Sequence[Arm], workload: str = "cnn", seed: int = 1, **given: Any) -> Plan:
    """The plan of ``arms``; ``given`` are fields of it, of its stopping rule, or of how each workload is trained."""
    stopping = {**STOPPING, **_taken(given, StoppingRule)}
    training = {**TRAINING, **_taken(given, WorkloadSpec)}
    names = dict.fromkeys(arm.workload or workload for arm in arms)
    usual = {name: WorkloadSpec(**training) for name in names}
    return Plan(tuple(arms), workload, given.pop("workloads", usual), StoppingRule(**stopping), seed, **given)


def _taken(given: dict[str, Any], of: type) -> dict[str, Any]:
    """Take from ``given`` what is a field of ``of``."""
    return {one.name: given.pop(one.name) for one in fields(of) if one.name in given}
