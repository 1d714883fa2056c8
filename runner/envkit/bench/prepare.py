"""From a study to a run that can start on this machine: everything is looked at, and refused here if at all."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envkit import __version__
from envkit.bench import calibration, record, requirements, seal
from envkit.bench.arms import Arm
from envkit.bench.context import execution_context, recorded
from envkit.bench.job import Job
from envkit.bench.record import Event, Record
from envkit.bench.study import Study
from envkit.checks.doctor import preflight
from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.messages import Message
from envkit.profiles import catalogue, profile
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import of_rank, resolve


@dataclass(frozen=True)
class Prepared:
    """A run that can start."""

    job: Job
    data_source: Message
    findings: list[dict[str, object]]


def prepare(requested: Study, made: Mapping[str, Profile] | None = None) -> Prepared:
    """Load and resolve the profiles, look into the images, find the data. Raises InputError for what can't be.

    ``made`` are profiles that are in no file yet, by what arms call them.
    """
    requirements.require_nodes(requested.nodes, requested.arms[0].engine)
    made = made or {}
    profiles = {arm.profile: made.get(arm.profile) or profile.load(arm.profile) for arm in requested.arms}
    requested = replace(
        requested, arms=tuple(requirements.arm_of(arm, profiles[arm.profile]) for arm in requested.arms)
    )
    profiles = {loaded.name: loaded for loaded in profiles.values()}
    most = requirements.require(requested)
    prefixes = [loaded.prefix[0] for loaded in profiles.values() if loaded.prefix]
    measured = {name for loaded in profiles.values() for name in loaded.env}
    context = execution_context(requested, [*prefixes, *requirements.tools(requested.options)], measured)
    surroundings = context.seen
    requirements.require_two_images(requested.arms, surroundings)
    requirements.require_in(surroundings, requested.own_workloads, requested.options)
    requirements.require_gpus(surroundings, most, requested.options)
    requirements.require_room(surroundings, requested.ranks)
    requirements.require_room(surroundings, requested.instances, "--instances", "each")
    environments, inside = {}, {}
    for arm in requested.arms:
        inspection = surroundings[arm.target]["inspection"]
        shares = arm.cpu_shares or arm.instances
        inside[arm.name] = of_rank(inspection, shares or arm.ranks or requested.ranks)
        with _naming_image(arm):
            environments[arm.name] = resolve(profiles[arm.profile], of_rank(inspection, shares or requested.ranks))
            catalogue.require(environments[arm.name], inside[arm.name], requested.allow_unknown)
    findings = preflight([(environments[arm.name], inside[arm.name]) for arm in requested.arms], requested.force)
    data = requirements.data(requested.data, requested.own_workloads)
    study = requested.completed(data.location)
    return Prepared(Job(study, environments, context), data.source, findings)


@contextlib.contextmanager
def _naming_image(arm: Arm) -> Iterator[None]:
    """Refusals in here name the image that it is about, if ``arm`` has one of its own."""
    try:
        yield
    except InputError as error:
        raise InputError(About(arm.image, error.message) if arm.image else error.message) from None


def begin(opened: Record, prepared: Prepared, results: Path) -> Event:
    """Write the first event of a run's record; ``results`` has the runs of before, among them calibrations."""
    job, study, context = prepared.job, prepared.job.study, prepared.job.context
    kept = seal.value_digests(context.kept, context.kept)
    return opened.append_sealed(
        "run",
        schema=record.SCHEMA,
        kit_version=__version__,
        command=sys.argv,
        cwd=str(Path.cwd()),
        study=study.to_json(),
        engines=recorded(context.seen),
        data_source=prepared.data_source.to_json(),
        environments={name: environment.to_json() for name, environment in job.environments.items()},
        commands={arm.name: job.typed(arm, opened.path.parent) for arm in study.arms},
        findings=prepared.findings,
        calibration=calibration.find(results, study, context.seen, kept),
        removed_variables=context.removed,
        allowed_variables=kept,
    )
