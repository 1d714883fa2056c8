"""From a specification to a run that can start on this machine: everything is looked at, and refused here if at all."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envkit import __version__
from envkit.bench import calibration, record, requirements, seal
from envkit.bench.context import ExecutionContext, execution_context, recorded
from envkit.bench.job import Job
from envkit.bench.plan import REFERENCE_PROFILE, Arm, Plan, StoppingRule, WorkloadSpec
from envkit.bench.record import Event, Record
from envkit.bench.specification import EVERY, Specification
from envkit.checks.preflight import preflight
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.messages import Message
from envkit.profiles import catalogue, profile
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import of_rank, resolve
from envkit.worker.workloads import GENERATED, get


@dataclass(frozen=True)
class Prepared:
    """A run that can start."""

    asked: Specification | None  # None for a confirmation, which a tuning asks for
    job: Job
    context: ExecutionContext
    data_source: Message
    findings: list[dict[str, Any]]


def prepare(asked: Specification, made: Mapping[str, Profile] | None = None) -> Prepared:
    """Load and resolve the profiles, look into the images, find the data. Raises InputError for what can't be.

    ``made`` are profiles that are in no file yet, by what arms call them.
    """
    requirements.require_nodes(asked.nodes, asked.arms[0].engine)
    made = made or {}
    profiles = {arm.profile: made.get(arm.profile) or profile.load(arm.profile) for arm in asked.arms}
    whole = asked
    asked = replace(asked, arms=tuple(requirements.arm_of(arm, profiles[arm.profile]) for arm in asked.arms))
    profiles = {loaded.name: loaded for loaded in profiles.values()}
    most = requirements.require(asked)
    prefixes = [loaded.prefix[0] for loaded in profiles.values() if loaded.prefix]
    measured = {name for loaded in profiles.values() for name in loaded.env}
    context = execution_context(asked, [*prefixes, *requirements.tools(asked.options)], measured)
    seen = context.seen
    requirements.require_two_images(asked.arms, seen)
    requirements.require_in(seen, asked.workloads, asked.options)
    requirements.require_gpus(seen, most, asked.options)
    requirements.require_room(seen, asked.nproc)
    requirements.require_room(seen, asked.instances, "--instances", "each")
    environments, inside = {}, {}
    for arm in asked.arms:
        inspection = seen[arm.target]["inspection"]
        parts = arm.cpu_shares or arm.instances
        inside[arm.name] = of_rank(inspection, parts or arm.ranks or asked.nproc)
        with _naming_image(arm):
            environments[arm.name] = resolve(profiles[arm.profile], of_rank(inspection, parts or asked.nproc))
            catalogue.require(environments[arm.name], inside[arm.name], asked.allow_unknown)
    findings = preflight([(environments[arm.name], inside[arm.name]) for arm in asked.arms], asked.force)
    data = requirements.data(asked)
    plan = plan_of(asked, data.location)
    job = Job(plan, environments, context.engines, context.inherited, context.kept, context.removed)
    return Prepared(whole, job, context, data.source, findings)


@contextlib.contextmanager
def _naming_image(arm: Arm) -> Iterator[None]:
    """Refusals in here name the image that it is about, if ``arm`` has one of its own."""
    try:
        yield
    except InputError as error:
        raise InputError(About(arm.image, error.message) if arm.image else error.message) from None


def plan_of(asked: Specification, data: str) -> Plan:
    """The plan of a run whose arms have the ranks of their profiles; ``data`` is where it was found."""
    command = asked.user_command
    return Plan(
        arms=asked.arms,
        workload=asked.workload,
        workloads=_workload_specs(asked, data),
        stopping=StoppingRule(
            budget_s=asked.budget_s,
            blocks=asked.blocks,
            precision=asked.precision,
            margin=asked.margin,
            timeout_s=asked.timeout_s,
            open_ended=asked.open_ended,
        ),
        seed=secrets.randbelow(2**31) if asked.seed is None else asked.seed,
        engine_options=asked.engine_options.to_json(),
        user_command=command,
        options=asked.options,
        epochs=asked.epochs,
        until=asked.until,
        ranks=asked.nproc,
        nodes=asked.nodes,
        more_references=_more_references(asked.arms) if asked.workload == EVERY and command is None else (),
        ablated=asked.ablated,
        weak=asked.weak,
    )


def _workload_specs(asked: Specification, data: str) -> dict[str, WorkloadSpec]:
    """How each workload is trained; ``data`` is for those that don't make their own."""
    if asked.user_command:
        steps = 0 if asked.user_command.is_paced else 1
        return {asked.workload: WorkloadSpec(asked.user_command.warmup_lines, steps, data)}
    return {
        name: WorkloadSpec(asked.warmup_steps, asked.steps, GENERATED if get(name).generated else data)
        for name in asked.workloads
    }


def _more_references(arms: Sequence[Arm]) -> tuple[str, ...]:
    """The reference's profile on the other workloads."""
    return tuple(arm.name for arm in arms[1:] if arm.profile == REFERENCE_PROFILE)


def begin(opened: Record, prepared: Prepared, results: Path) -> Event:
    """Write the first event of a run's record; ``results`` has the runs of before, among them calibrations."""
    job, context = prepared.job, prepared.context
    plan = job.plan
    kept = seal.value_digests(job.kept, job.kept)
    return opened.append_sealed(
        "run",
        schema=record.SCHEMA,
        kit_version=__version__,
        command=sys.argv,
        cwd=str(Path.cwd()),
        specification=prepared.asked and prepared.asked.to_json(),
        plan=plan.to_json(),
        engines=recorded(context.seen),
        data_source=prepared.data_source.to_json(),
        environments={name: environment.to_json() for name, environment in job.environments.items()},
        commands={arm.name: job.typed(arm, opened.path.parent) for arm in plan.arms},
        findings=prepared.findings,
        calibration=calibration.find(results, plan, context.seen, kept),
        removed_variables=context.removed,
        allowed_variables=kept,
    )
