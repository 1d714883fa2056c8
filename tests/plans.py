"""Studies for tests: every field has a usual value, and a test names those that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from envkit.bench.arms import Ablated, Arm, Contrast, View, effects, of_instances, of_ranks, of_settings
from envkit.bench.study import StoppingRule, Study, WorkloadSpec
from envkit.engines.base import EngineOptions
from envkit.worker.request import FullTraining
from envkit.worker.workloads import loader, loader_epochs

STOPPING = {"budget_s": 240.0, "timeout_s": 60.0}
TRAINING = {"warmup_steps": 1, "steps": 3}


def study_of(arms: Sequence[Arm], workload: str = "cnn", seed: int = 1, **given: Any) -> Study:
    """The study of ``arms``; ``given`` are fields of it, of its stopping rule, or of trainings."""
    stopping = StoppingRule(**{**STOPPING, **_taken(given, StoppingRule)})
    training = WorkloadSpec(**{**TRAINING, **_taken(given, WorkloadSpec)})
    options = EngineOptions(**given.pop("engine_options", {}))
    full = _taken(given, FullTraining)
    names = dict.fromkeys(arm.workload or workload for arm in arms)
    usual = {"title": "mine", "data": "/data", "workloads": dict.fromkeys(names, training)}
    if full.get("epochs"):
        usual["full"] = FullTraining(**full)
    references = given.pop("references", ())
    usual["view"] = view_of(arms, workload, references, given.get("ablated", ()))
    if "contrasts" not in given:
        usual["contrasts"] = tuple(contrasts_of(arms, references, **_of_contrasts(given)))
    named = {**usual, **given}
    return Study(arms=tuple(arms), workload=workload, stopping=stopping, seed=seed, engine_options=options, **named)


def view_of(
    arms: Sequence[Arm], workload: str = "cnn", references: Iterable[str] = (), ablated: Sequence[Ablated] = ()
) -> View:
    """The question that a command would set in a study of these arms."""
    workloads = {arm.workload or workload for arm in arms}
    if ablated:
        return View.SETTINGS
    if len({arm.image for arm in arms}) > 1:
        return View.IMAGES
    if references:
        return View.WORKLOADS
    if len({(arm.profile, arm.target) for arm in arms}) > 1 or len(arms) < 2:
        return View.EFFECTS
    if len(workloads) > 1:
        loaders = all((loader.settings_of(name) or loader_epochs.settings_of(name)) is not None for name in workloads)
        return View.LOADERS if loaders else View.EFFECTS
    several = any(arm.instances or arm.cpu_shares or (arm.ranks or 1) > 1 for arm in arms)
    return View.EFFECTS if several else View.CALIBRATION


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
    view = view_of([Arm(**arm) for arm in arms], study["workload"])
    return {**study, "arms": [*arms], "contrasts": compared, "view": view}
