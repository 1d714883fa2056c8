"""What a record says, as plain data: per profile, compared, proven or not. Reports only print this."""

from __future__ import annotations

import statistics as basic
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from runner.effect import Check, check
from runner.environment import Environment
from runner.measure import block_times, samples
from runner.plan import REFERENCE, Plan
from runner.record import Event
from runner.statistics import Speedup, speedup

# Losses that differ by more than this share are not the rounding of another thread count or order.
LOSS_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Measured:
    """One profile's samples. Times are medians over samples, in seconds; counts are medians per timed step."""

    profile: str
    samples: int
    step_s: float
    images_per_s: float
    system_share: float
    faults_per_step: float
    peak_memory_bytes: float
    throttled_s: float
    training_s: float
    accuracy: float | None
    checks: list[Check]

    @property
    def in_effect(self) -> bool:
        return all(checked.holds for checked in self.checks)


@dataclass(frozen=True)
class Losses:
    """How far the profile's losses are from the reference's on the same batches (shares of the reference's loss)."""

    steps: int
    reference_final: float
    profile_final: float
    largest_difference: float
    agree: bool


@dataclass(frozen=True)
class Summary:
    plan: Plan
    host: dict[str, Any]
    engine: dict[str, Any]
    data_source: str
    synthetic: bool
    environments: dict[str, Environment]
    commands: dict[str, str]
    measured: list[Measured]
    speedup: Speedup | None
    single_ratio: float | None
    losses: Losses | None
    failures: list[Event]
    removed_variables: dict[str, str]
    kept_variables: dict[str, str]
    ended: str | None

    def of(self, profile: str) -> Measured | None:
        return next((measured for measured in self.measured if measured.profile == profile), None)

    @property
    def not_in_effect(self) -> list[Measured]:
        return [measured for measured in self.measured if not measured.in_effect]

    @property
    def verdict(self) -> str:
        """One of: faster, slower, no difference found, NOT IN EFFECT, failed, too few samples, reference only."""
        if self.not_in_effect:
            return "NOT IN EFFECT"
        if self.failures and self.ended == "a worker failed":
            return "failed"
        if self.plan.profile == REFERENCE:
            return "reference only"
        return self.speedup.verdict if self.speedup else "too few samples"

    def to_json(self) -> dict[str, Any]:
        """What a script needs."""
        return {
            "profile": self.plan.profile,
            "reference": REFERENCE,
            "verdict": self.verdict,
            "speedup": asdict(self.speedup) if self.speedup else None,
            "single_ratio": self.single_ratio,
            "losses": asdict(self.losses) if self.losses else None,
            "measured": [{**asdict(measured), "in_effect": measured.in_effect} for measured in self.measured],
            "synthetic_data": self.synthetic,
            "data_source": self.data_source,
            "failures": [{key: event[key] for key in ("block", "profile", "problem")} for event in self.failures],
            "ended": self.ended,
            "plan": self.plan.to_json(),
            "host": self.host,
            "engine": self.engine,
        }


def summarise(events: Sequence[Event]) -> Summary:
    """The summary of a record's events, whether the run was completed or not."""
    by_kind: dict[str, list[Event]] = {}
    for event in events:
        by_kind.setdefault(event["event"], []).append(event)
    run = by_kind["run"][0]
    plan = Plan.from_json(run["plan"])
    kept = run["kept_variables"]
    environments = {name: Environment.from_json(document) for name, document in run["environments"].items()}
    measured = [
        _measured(environments[profile], kept, own)
        for profile in plan.profiles
        if (own := [event for event in samples(events) if event["profile"] == profile])
    ]
    compared = plan.profile != REFERENCE and len(measured) == 2 and all(one.in_effect for one in measured)
    reference_s, profile_s = block_times(events, plan.profile)
    return Summary(
        plan=plan,
        host=run["host"],
        engine=run["engine"],
        data_source=run["data_source"],
        synthetic=plan.data == "synthetic",
        environments=environments,
        commands=run["commands"],
        measured=measured,
        speedup=speedup(reference_s, profile_s) if compared else None,
        single_ratio=reference_s[0] / profile_s[0] if compared and plan.epochs and reference_s else None,
        losses=_losses(events, plan.profile) if compared else None,
        failures=by_kind.get("failure", []),
        removed_variables=run["removed_variables"],
        kept_variables=kept,
        ended=by_kind["end"][-1]["reason"] if "end" in by_kind else None,
    )


def _measured(environment: Environment, kept: dict[str, str], own: Sequence[Event]) -> Measured:
    steps = len(own[0]["step_s"])
    seconds = basic.median(event["seconds"] for event in own)
    usage = [event["usage"] for event in own]
    checked = [check(environment, event["evidence"], kept) for event in own]
    # of several samples the one that is least in effect is shown
    worst = max(checked, key=lambda checks: sum(not one.holds for one in checks))
    return Measured(
        profile=environment.profile,
        samples=len(own),
        step_s=seconds / steps,
        images_per_s=own[0]["images_per_step"] * steps / seconds,
        system_share=basic.median(one["system_s"] / (one["system_s"] + one["user_s"]) for one in usage),
        faults_per_step=basic.median(one["minor_faults"] for one in usage) / steps,
        peak_memory_bytes=basic.median(event["peak_memory_bytes"] for event in own),
        throttled_s=sum(one["throttled_s"] for one in usage),
        training_s=seconds,
        accuracy=basic.median(event["accuracy"] for event in own) if own[0]["accuracy"] is not None else None,
        checks=worst,
    )


def _losses(events: Sequence[Event], profile: str) -> Losses:
    """The worst agreement of any of the profile's samples with the reference's first."""
    reference = next(event["losses"] for event in samples(events) if event["profile"] == REFERENCE)
    candidates = [event["losses"] for event in samples(events) if event["profile"] == profile]

    def difference(losses: Sequence[float]) -> float:
        return float(max(abs(one - other) / abs(other) for one, other in zip(losses, reference, strict=True)))

    furthest = max(candidates, key=difference)
    largest = difference(furthest)
    return Losses(len(reference), reference[-1], furthest[-1], largest, largest <= LOSS_TOLERANCE)
