"""Plans for tests: every field has a usual value, and a test names those that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from envkit.bench.arms import Ablated, Arm, Contrast, effects, of_instances, of_ranks, of_settings
from envkit.bench.study import StoppingRule, Study, WorkloadSpec
from envkit.engines.base import EngineOptions

STOPPING = {"budget_s": 240.0, "timeout_s": 60.0}
TRAINING = {"warmup_steps": 1, "steps": 3}


def study_of(arms: Sequence[Arm], workload: str = "cnn", seed: int = 1, **given: Any) -> Study:
    """The plan of ``arms``; ``given`` are fields of it, of its stopping rule, or of how each workload is trained."""
    stopping = StoppingRule(**{**STOPPING, **_taken(given, StoppingRule)})
    training = WorkloadSpec(**{**TRAINING, **_taken(given, WorkloadSpec)})
    options = EngineOptions(**given.pop("engine_options", {}))
    names = dict.fromkeys(arm.workload or workload for arm in arms)
    usual = {"title": "mine", "data": "/data", "workloads": dict.fromkeys(names, training)}
    references = given.pop("references", ())
    if "contrasts" not in given:
        usual["contrasts"] = tuple(contrasts_of(arms, references, **_of_contrasts(given)))
    named = {**usual, **given}
    return Study(arms=tuple(arms), workload=workload, stopping=stopping, seed=seed, engine_options=options, **named)


def contrasts_of(
    arms: Sequence[Arm],
    references: Iterable[str] = (),
    weak: bool = False,
    ranks: int = 1,
    nodes: int = 1,
    ablated: Sequence[Ablated] = (),
) -> list[Contrast]:
    """What is compared in a run of ``arms``."""
    compared = of_settings(arms, ablated) if ablated else effects(arms, references)
    return [*compared, *of_ranks(arms, ranks, nodes, weak), *of_instances(arms)]


def _of_contrasts(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("ranks", "nodes", "weak", "ablated") if name in given}


def _taken(given: dict[str, Any], of: type) -> dict[str, Any]:
    """Take from ``given`` what is a field of ``of``."""
    return {one.name: given.pop(one.name) for one in fields(of) if one.name in given}


def with_arms(study: dict[str, Any], arms: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The JSON of a plan with other arms, compared with the first."""
    compared = [asdict(one) for one in contrasts_of([Arm(**arm) for arm in arms])]
    return {**study, "arms": [*arms], "contrasts": compared}
