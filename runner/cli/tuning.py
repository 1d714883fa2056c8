"""A tuning from what was asked for to its record: on this machine, or on each of the nodes that search together."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from runner import __version__
from runner.bench import batch_split, record, requirements
from runner.bench.context import ExecutionContext, execution_context
from runner.bench.measure import Job
from runner.bench.plan import REFERENCE_PROFILE, Plan
from runner.bench.prepare import Prepared, plan_of
from runner.bench.prepare import begin as begin_record
from runner.bench.record import Event, Record
from runner.checks.preflight import preflight
from runner.cli import measuring, rank_options
from runner.profiles import profile
from runner.profiles.environment import Environment
from runner.profiles.resolve import of_rank, resolve
from runner.tuning import profile_file, session, space_file
from runner.tuning.feasible import require_candidates
from runner.tuning.narrow import narrow
from runner.tuning.peers import Peers
from runner.tuning.session import Session, Settings
from runner.tuning.specification import TuningSpecification
from runner.tuning.trials import lengths

SHIPPED_FOLDER = profile.PROFILE_FOLDER


def first_event(asked: TuningSpecification) -> tuple[dict[str, Any], ExecutionContext]:
    """The fields of a record's first event, found by looking at this machine. Raises InputError."""
    space = space_file.read(Path(asked.space))
    wanted, numerics = asked.specification, asked.numerics
    how, engine = wanted.options, wanted.arms[0].engine
    trained = None if wanted.user_command else wanted.workload
    requirements.require_modes(wanted.workloads, how)
    most = rank_options.require_searched(space, trained, how, wanted.nproc)
    rank_options.require_backend(wanted.options.backend, most)
    requirements.require_exchange(wanted.workloads, how, most)
    given = [profile.load(name, SHIPPED_FOLDER) for name in profile.names(SHIPPED_FOLDER)]
    context = execution_context(wanted, [*session.prefix_commands(space, given), *requirements.tools(how)])
    requirements.require_in(context.seen, wanted.workloads, how)
    requirements.require_gpus(context.seen, wanted.nproc, how)
    requirements.require_room(context.seen, wanted.nproc)
    inspection = of_rank(context.seen[engine]["inspection"], wanted.nproc)
    baseline = resolve(profile.load(REFERENCE_PROFILE), inspection)
    gpus = inspection["facts"].get("gpus", 0)
    not_tried = partial(batch_split.not_tried, trained, how, numerics, wanted.nproc, gpus)
    narrowed, _ = narrow(space, inspection, numerics, not_tried)  # before anything is recorded: it may leave nothing
    shipped, left_out = (
        ([], []) if asked.space_only else session.shipped(SHIPPED_FOLDER, inspection, numerics, space.first, not_tried)
    )
    require_candidates(narrowed, baseline, inspection, one_by_one=asked.blocks > 0, alone=not shipped)
    data = requirements.data(wanted)
    plan, steps = lengths(plan_of(wanted, data.location))
    settings = Settings(asked.budget_s, plan.seed, numerics, asked.blocks, steps, asked.profile)
    fields = {
        "schema": record.SCHEMA,
        "runner_version": __version__,
        "command": sys.argv,
        "settings": asdict(settings),
        "space": space.name,
        "plan": plan.to_json(),
        "engines": context.seen,
        "data_source": data.source,
        "baseline": baseline.to_json(),
        "shipped": [
            {"profile": profile_file.to_json(one.profile), "environment": one.environment.to_json()} for one in shipped
        ],
        "left_out_profiles": [asdict(one) for one in left_out],
        "removed_variables": context.removed,
        "allowed_variables": context.kept,
    }
    return fields, context


def session_of(
    opened: Record,
    events: list[Event],
    context: ExecutionContext,
    quiet: bool,
    peers: Peers | None = None,
    turn: int = 0,
) -> Session:
    """The tuning that a record has begun, to go on with. Raises InputError for a damaged record.

    Of several nodes, its ``peers``, each begins with the shipped profiles whose ``turn`` it is there.
    """
    first, folder = events[0], opened.path.parent
    with record.reading(folder):
        plan = Plan.from_json(first["plan"])
        settings = Settings(**first["settings"])
        if events[-1]["event"] == "resume":
            settings = replace(settings, profile=events[-1].get("profile", settings.profile))
        baseline = Environment.from_json(first["baseline"])
        inspection = of_rank(first["engines"][plan.reference.engine]["inspection"], plan.ranks)
        job = Job(plan, {REFERENCE_PROFILE: baseline}, context.engines, context.inherited, context.kept)
        begin = _begin(context, first["data_source"], inspection)
        return Session(settings, job, inspection, opened, events, begin, quiet, peers, turn)


def _begin(context: ExecutionContext, data_source: str, inspection: Mapping[str, Any]) -> Any:
    """Writes the first event of the confirmation's record."""

    def begin(opened: Record, job: Job) -> Event:
        inside = [(one, of_rank(inspection, one.ranks)) for one in job.environments.values()]
        found = preflight(inside, force=True)
        return begin_record(opened, Prepared(None, job, context, data_source, found), measuring.results())

    return begin
