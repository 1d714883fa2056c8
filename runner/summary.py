"""What a record says, as plain data: per arm, compared, proven or not. Reports only print this."""

from __future__ import annotations

import math
import statistics as basic
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.doctor import diagnose_process
from runner.doctor.finding import Situation
from runner.effect import Check, check
from runner.environment import Environment
from runner.measure import FAILED, block_times, samples
from runner.plan import Arm, Plan
from runner.record import Event
from runner.statistics.interval import Speedup, speedup
from runner.worker.fashion_mnist import SYNTHETIC

# Losses that differ by more than this share are not the rounding of another thread count or order.
LOSS_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Measured:
    """One arm's samples. Times are medians over samples, in seconds; counts are medians per timed step.

    ``others_cpus`` is the most that the rest of the machine used during a sample's timed steps, and ``steal_cpus`` the
    most that its hypervisor withheld, in CPUs: one noisy sample must not hide behind many quiet ones.
    """

    arm: str
    samples: int
    step_s: float
    images_per_s: float
    system_share: float
    faults_per_step: float
    peak_memory_bytes: float
    throttled_s: float
    others_cpus: float
    steal_cpus: float
    training_s: float
    accuracy: float | None
    checks: list[Check]

    @property
    def in_effect(self) -> bool:
        return all(checked.holds for checked in self.checks)


@dataclass(frozen=True)
class Losses:
    """How far an arm's losses are from the reference's on the same batches (shares of the reference's loss)."""

    steps: int
    reference_final: float
    final: float
    largest_difference: float
    agree: bool


@dataclass(frozen=True)
class Comparison:
    """One arm against the reference.

    ``verdict`` is one of: faster, slower, no difference found, NOT IN EFFECT, failed, too few samples, one run each
    (then ``single_ratio`` is there, and no ``speedup``).
    """

    arm: str
    verdict: str
    speedup: Speedup | None
    single_ratio: float | None
    losses: Losses | None


@dataclass(frozen=True)
class Summary:
    """``engines`` has, by name, what each engine said of itself (``engine``) and of its image (``inspection``)."""

    plan: Plan
    engines: dict[str, dict[str, Any]]
    data_source: str
    environments: dict[str, Environment]
    commands: dict[str, str]
    measured: list[Measured]
    comparisons: list[Comparison]
    findings: list[dict[str, str]]
    failures: list[Event]
    removed_variables: dict[str, str]
    kept_variables: dict[str, str]
    ended: str | None

    @property
    def synthetic(self) -> bool:
        return self.plan.data == SYNTHETIC

    @property
    def not_in_effect(self) -> list[Measured]:
        return [measured for measured in self.measured if not measured.in_effect]

    def inspection(self, arm: Arm) -> dict[str, Any]:
        """What was seen inside the image that ``arm`` ran in, before it ran."""
        return dict(self.engines[arm.engine]["inspection"])

    def to_json(self) -> dict[str, Any]:
        """What a script needs."""
        return {
            "reference": self.plan.reference.name,
            "comparisons": [_finite(asdict(one)) for one in self.comparisons],
            "measured": [{**asdict(one), "in_effect": one.in_effect} for one in self.measured],
            "synthetic_data": self.synthetic,
            "data_source": self.data_source,
            "findings": self.findings,
            "failures": [{key: event[key] for key in ("block", "arm", "problem")} for event in self.failures],
            "ended": self.ended,
            "plan": self.plan.to_json(),
            "engines": self.engines,
        }


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have (NaN, infinity): None in their place."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summarise(events: Sequence[Event]) -> Summary:
    """The summary of a record's events, whether the run was completed or not."""
    by_kind: dict[str, list[Event]] = {}
    for event in events:
        by_kind.setdefault(event["event"], []).append(event)
    run = by_kind["run"][0]
    plan = Plan.from_json(run["plan"])
    kept = run["kept_variables"]
    environments = {name: Environment.from_json(document) for name, document in run["environments"].items()}
    measured = {
        arm.name: _measured(arm, environments[arm.name], kept, own)
        for arm in plan.arms
        if (own := [event for event in samples(events) if event["arm"] == arm.name])
    }
    last = next((event for event in reversed(events) if event["event"] in ("end", "resume")), {"event": "run"})
    ended = last["reason"] if last["event"] == "end" else None  # else it still runs, or was killed
    return Summary(
        plan=plan,
        engines=run["engines"],
        data_source=run["data_source"],
        environments=environments,
        commands=run["commands"],
        measured=list(measured.values()),
        comparisons=[_comparison(events, plan, arm, measured, failed=ended == FAILED) for arm in plan.compared],
        findings=[*run["findings"], *_findings(events, plan, run["engines"], environments)],
        failures=by_kind.get("failure", []),
        removed_variables=run["removed_variables"],
        kept_variables=kept,
        ended=ended,
    )


def _findings(
    events: Sequence[Event], plan: Plan, engines: dict[str, Any], environments: dict[str, Environment]
) -> list[dict[str, str]]:
    """What the evidence of each arm's first sample shows to be wrong."""
    found = []
    for arm in plan.arms:
        evidence = next((event["evidence"] for event in samples(events) if event["arm"] == arm.name), None)
        if evidence is not None:
            inside = engines[arm.engine]["inspection"]
            situation = Situation(inside["facts"], inside["fingerprint"], environments[arm.name], evidence)
            found += [{**asdict(one), "seen": f"{arm.name}: {one.seen}"} for one in diagnose_process(situation)]
    return found


def _comparison(
    events: Sequence[Event], plan: Plan, arm: Arm, measured: dict[str, Measured], failed: bool
) -> Comparison:
    both = [measured[name] for name in (plan.reference.name, arm.name) if name in measured]
    if not all(one.in_effect for one in both):
        return Comparison(arm.name, "NOT IN EFFECT", None, None, None)
    reference_s, arm_s = block_times(events, plan, arm)
    losses = _losses(events, plan, arm) if len(both) == 2 else None
    if failed:
        return Comparison(arm.name, "failed", None, None, losses)
    if plan.epochs and reference_s:
        return Comparison(arm.name, "one run each", None, reference_s[0] / arm_s[0], losses)
    found = speedup(reference_s, arm_s)
    return Comparison(arm.name, found.verdict if found else "too few samples", found, None, losses)


def _measured(arm: Arm, environment: Environment, kept: dict[str, str], own: Sequence[Event]) -> Measured:
    steps = len(own[0]["step_s"])
    seconds = basic.median(event["seconds"] for event in own)
    usage = [event["usage"] for event in own]
    checked = [check(environment, event["evidence"], kept, event["stderr"]) for event in own]
    # of several samples the one that is least in effect is shown
    worst = max(checked, key=lambda checks: sum(not one.holds for one in checks))
    return Measured(
        arm=arm.name,
        samples=len(own),
        step_s=seconds / steps,
        images_per_s=own[0]["images_per_step"] * steps / seconds,
        system_share=basic.median(one["system_s"] / (one["system_s"] + one["user_s"]) for one in usage),
        faults_per_step=basic.median(one["minor_faults"] for one in usage) / steps,
        peak_memory_bytes=basic.median(event["peak_memory_bytes"] for event in own),
        throttled_s=sum(one["throttled_s"] for one in usage),
        others_cpus=max(
            (event["usage"]["machine_busy_s"] - event["usage"]["user_s"] - event["usage"]["system_s"])
            / event["seconds"]
            for event in own
        ),
        steal_cpus=max(event["usage"]["machine_steal_s"] / event["seconds"] for event in own),
        training_s=seconds,
        accuracy=basic.median(event["accuracy"] for event in own) if own[0]["accuracy"] is not None else None,
        checks=worst,
    )


def _losses(events: Sequence[Event], plan: Plan, arm: Arm) -> Losses:
    """The worst agreement of any of the arm's samples with the reference's first."""
    reference = next(event["losses"] for event in samples(events) if event["arm"] == plan.reference.name)
    candidates = [event["losses"] for event in samples(events) if event["arm"] == arm.name]

    def difference(losses: Sequence[float]) -> float:
        shares = [abs(one - other) / abs(other) for one, other in zip(losses, reference, strict=True)]
        return math.inf if any(map(math.isnan, shares)) else max(shares)

    furthest = max(candidates, key=difference)
    largest = difference(furthest)
    return Losses(len(reference), reference[-1], furthest[-1], largest, largest <= LOSS_TOLERANCE)
