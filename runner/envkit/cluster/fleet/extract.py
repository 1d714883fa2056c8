"""From one record to a node as plain data, or to why its times can't be used."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.analysis.engine_facts import cpu_name, engine_facts, gpu_names
from envkit.analysis.messages import KINDS
from envkit.analysis.noise import commonest
from envkit.analysis.recorded_runs import reason
from envkit.bench import record
from envkit.bench.blocks import INITIAL_WEIGHTS, skipped_steps
from envkit.bench.measure import ENDED, FAILED, NOT_IN_EFFECT
from envkit.bench.plan import Arm, Plan
from envkit.bench.record import FILE_NAME, Event
from envkit.checks.effect import shown
from envkit.checks.finding_messages import Unmet
from envkit.checks.interference import disturbances
from envkit.checks.messages import NotInEffect
from envkit.checks.sample_effect import checks_of
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.cluster.fleet.parsing import shortened, whole
from envkit.common.errors import InputError
from envkit.profiles.environment import Environment
from envkit.rendering import text
from envkit.worker.modes import CUDA, FP32

SHOWN_OF_DIGEST = 12
# In seconds since 1970: a clock that says more can't be printed as a date.
LATEST = 2.0**37


def name_of(folder: Path) -> str:
    """By which a node is called: what is no UTF-8 could be in no report."""
    return folder.name.encode(errors="replace").decode()


def read_node(folder: Path, profile: str | None = None) -> Node | LeftOut:
    """What is kept of the record in ``folder``, or why it can't be used."""
    try:
        events = record.read(folder, parse=shortened)
        with record.reading(folder):
            return _node(name_of(folder), events, profile)
    except InputError as error:
        return LeftOut(name_of(folder), text(reason(error)))
    except OSError as error:
        return LeftOut(name_of(folder), f"{FILE_NAME}: can't be read: {error.strerror}")


def _node(name: str, events: Sequence[Event], profile: str | None) -> Node:
    run = events[0]
    plan = Plan.from_json(run["plan"])
    if len(plan.workloads) > 1:
        raise InputError("measured several workloads, and nodes are compared by one: measure that, with --workload")
    arm = _arm(plan, profile)
    _require_success(events)
    samples = [event for event in events if event["event"] == "sample" and event["arm"] == arm.name]
    if not samples:
        raise InputError(f"has no sample of {arm.name}")
    environment = Environment.from_json(run["environments"][arm.name])
    kept = run["allowed_variables"]
    _require_effect(environment.profile, whole(samples[-1]))
    skipped = skipped_steps(events)
    step_s = tuple(statistics.fmean(event["step_s"][skipped:]) for event in samples)
    if not all(math.isfinite(second) and second > 0 for second in step_s):
        raise InputError("has a sample whose time is not above 0")
    began = float(run["time"])
    if not 0 <= began < LATEST:
        raise InputError(f"began at {began:g} seconds since 1970, which is no time")
    seen = run["engines"][arm.target]
    driver = (seen["inspection"].get("accelerator") or {}).get("driver")
    known = {**engine_facts(seen), "GPU driver": driver}
    facts = {what: value for what, value in known.items() if value is not None}
    disturbed = {number: kinds for number, event in enumerate(samples) if (kinds := disturbances(event))}
    kernels = [event for event in events if event["event"] == "reference-kernel"]
    clocks = [mhz for event in samples if (mhz := event["usage"].get("frequency_mhz")) is not None]
    return Node(
        name=name,
        profile=arm.profile,
        workload=f"{plan.workload_of(arm)}{f' ({plan.scaling})' if plan.weak else ''}",
        kind=_kind(plan, seen["inspection"]),
        must_agree=_must_agree(plan, arm, environment, kept, seen, samples[0]["digests"]),
        facts=facts,
        memory_bytes=seen["inspection"]["fingerprint"]["memory_bytes"],
        began=began,
        finished=_last(events).get("reason") in ENDED,
        step_s=step_s,
        samples_with_interference=len(disturbed),
        interference=KINDS[commonest(disturbed)] if disturbed else "",
        reference_kernel_s=statistics.median(event["seconds"] for event in kernels) if kernels else None,
        reference_kernel_digest=kernels[0]["digest"] if kernels else None,
        clock_mhz=statistics.median(clocks) if clocks else None,
    )


def _kind(plan: Plan, inspection: dict[str, Any]) -> str:
    """The type of machine; GPUs belong to it where they are trained on, as a command of the user's own may do."""
    host, usable = inspection["fingerprint"], inspection["facts"]["usable_cpus"]
    gpus = gpu_names(inspection) if plan.options.device == CUDA or plan.user_command is not None else ""
    return f"{cpu_name(host)}, {usable} usable CPUs ({host['architecture']}){gpus and f', {gpus}'}"


def _arm(plan: Plan, profile: str | None) -> Arm:
    """The arm that the fleet is judged by: the one of ``profile``, else what was compared, else what was alone."""
    subjects = plan.subjects
    if profile is None:
        if len(subjects) > 1:
            names = ", ".join(arm.profile for arm in subjects)
            raise InputError(f"measured several profiles ({names}): choose one with --profile")
        return subjects[0]
    found = next((arm for arm in plan.arms if arm.profile == profile), None)
    if found is None:
        raise InputError(f"did not measure {profile}, but {', '.join(arm.profile for arm in plan.arms)}")
    return found


def _last(events: Sequence[Event]) -> Event:
    """How the run ended or went on last; the event that began it where it did neither."""
    return next((event for event in reversed(events) if event["event"] in ("end", "resume")), events[0])


def _require_success(events: Sequence[Event]) -> None:
    """Raise InputError for a run that a failure ended, or a profile that was not in effect."""
    reason = _last(events).get("reason")
    if reason == FAILED:
        failure = next(event for event in reversed(events) if event["event"] == "failure")
        printed = str(failure["stderr"]).strip().splitlines()
        raise InputError(f"the worker {failure['problem']}{f': {printed[-1]}' if printed else ''}")
    if reason == NOT_IN_EFFECT:
        run, sample = events[0], next(event for event in reversed(events) if event["event"] == "sample")
        _require_effect(run["environments"][sample["arm"]]["profile"], whole(sample))
        raise InputError("the profile was not in effect")


def _require_effect(profile: str, sample: Event) -> None:
    """Raise InputError for a sample in which ``profile`` was not in effect.

    A run ends with the first such sample, so looking at the last one is enough.
    """
    missed = next((one for one in checks_of(sample) if not one.holds), None)
    if missed is not None:
        raise InputError(NotInEffect(profile, Unmet(missed.key, shown(missed.expected), shown(missed.seen))))


def _must_agree(
    plan: Plan,
    arm: Arm,
    environment: Environment,
    kept: Mapping[str, Any],
    seen: dict[str, Any],
    digests: dict[str, str],
) -> dict[str, str]:
    """What was measured, by names that a message can use."""
    found = {
        "profile": arm.profile,
        "workload": plan.workload_of(arm),
        "mode": plan.options.text() or FP32,
        "number of steps": str(plan.training.steps),
        "number of warm-up steps": str(plan.training.warmup_steps),
        "number of epochs": str(plan.epochs),
        "engine": arm.engine,
        "image digest": seen["engine"].get("digest") or "",
        "PyTorch": seen["inspection"]["packages"].get("torch") or "",
        "prefix": " ".join(environment.prefix),
    }
    if arm.instances:
        found["number of trainings at once"] = str(arm.instances)
    if plan.distributed:
        found |= {"number of ranks": str(plan.ranks_of(arm)), "scaling": plan.scaling}
    found |= {f"variable {name}": value for name, value in sorted(environment.variables.items())}
    if kept:
        found["variables kept from the caller"] = ", ".join(sorted(kept))
    if plan.user_command is not None:  # what its folder holds may change as it runs
        return {**found, "command": " ".join(plan.user_command.argv)}
    for what, digest in sorted(digests.items()):
        if what != INITIAL_WEIGHTS:  # they follow from the code and PyTorch
            found[f"digest of the {what.replace('_', ' ')}"] = f"{digest[:SHOWN_OF_DIGEST]}…"
    return found
