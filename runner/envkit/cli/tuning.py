"""A tuning from what was asked for to its record: on this machine, or on each of the nodes that search together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from envkit import __version__
from envkit.bench import batch_split, early_checks, record, requirements, resuming, seal
from envkit.bench.context import (
    ExecutionContext,
    execution_context,
    recorded,
    require_same_machine,
    require_same_values,
)
from envkit.bench.job import Job
from envkit.bench.prepare import Prepared
from envkit.bench.prepare import begin as begin_record
from envkit.bench.record import Event, Record
from envkit.bench.study import REFERENCE_PROFILE, Study
from envkit.checks.doctor import preflight
from envkit.cli import measuring, rank_options
from envkit.messages import Message, from_json
from envkit.profiles import places
from envkit.profiles import profile as profiles
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.resolve import of_rank, resolve
from envkit.tuning import profile_file, session, space_file
from envkit.tuning import shipped as shipped_profiles
from envkit.tuning.events import parse_all
from envkit.tuning.narrow import narrow, require_candidates
from envkit.tuning.session import Session
from envkit.tuning.shared_trials import Peers
from envkit.tuning.space import Space
from envkit.tuning.study import SearchSettings, TuningStudy, lengths

# Writes the first event of a record.
Begin = Callable[[Record, Job], Event]
SHIPPED_FOLDER = places.PROFILE_FOLDER
# Fields of a tuning's first event that must be equal if its command is given again.
INTENT = ("settings", "trial_steps", "space", "space_sha256", "study", "baseline", "shipped", "left_out_profiles")


def require_same_tuning(folder: Path, first: Event, fields: Event, context: ExecutionContext) -> None:
    """Raise InputError if the ``fields`` found here differ from ``first``, the first event of the record.

    The file to write the profile to may differ.
    """
    with record.reading(folder):
        recorded_intent = {name: first[name] for name in INTENT}
        recorded_intent["settings"] = {**recorded_intent["settings"], "profile": fields["settings"]["profile"]}
        kept = sorted(first["allowed_variables"])
        recorded_intent["study"] = resuming.without_folder(recorded_intent["study"])
    intent = {**{name: fields[name] for name in INTENT}, "study": resuming.without_folder(fields["study"])}
    different = resuming.differences(recorded_intent, intent)
    different += resuming.differences(kept, sorted(context.kept), "kept variables")
    resuming.require_same(folder, first, different)
    require_same_machine(folder, first, context.seen)
    if seal.is_good(first):  # another user's digests tell nothing
        require_same_values(folder, first, context.kept)


def require_early(tuning: TuningStudy, output: Path | None) -> None:
    """Raise InputError for what can be told wrong before anything starts; ``output`` is the folder for the record."""
    wanted = tuning.study
    _require(tuning)
    early_checks.require(wanted, output)
    if not tuning.settings.blocks:  # the baseline and what is found, compared in a confirmation
        early_checks.require_time(wanted.with_stopping(budget_s=tuning.settings.budget_s), 2)


def _require(tuning: TuningStudy) -> Space:
    """Return the space to search. Raise InputError where it can't be searched by what is to be trained."""
    space = space_file.read(Path(tuning.space))
    wanted = tuning.study
    trained = None if wanted.user_command else wanted.workload
    requirements.require_modes(wanted.own_workloads, wanted.options)
    most = rank_options.require_searched(space, trained, wanted.options, wanted.ranks)
    rank_options.require_backend(wanted.options.backend, most)
    requirements.require_exchange(wanted.own_workloads, wanted.options, most)
    return space


def first_event(tuning: TuningStudy) -> tuple[Event, ExecutionContext]:
    """The fields of a record's first event, found by looking at this machine. Raises InputError."""
    space = _require(tuning)
    space_sha256 = session.require_space(Path(tuning.space), tuning.space_sha256)
    wanted, numerics = tuning.study, tuning.settings.numerics
    options, engine = wanted.options, wanted.arms[0].engine
    trained = None if wanted.user_command else wanted.workload
    shipped_files = [profiles.load(name, SHIPPED_FOLDER) for name in profiles.names(SHIPPED_FOLDER)]
    context = execution_context(wanted, [*session.prefix_commands(space, shipped_files), *requirements.tools(options)])
    requirements.require_in(context.seen, wanted.own_workloads, options)
    requirements.require_gpus(context.seen, wanted.ranks, options)
    requirements.require_room(context.seen, wanted.ranks)
    inspection = of_rank(context.seen[engine]["inspection"], wanted.ranks)
    baseline = resolve(profiles.load(REFERENCE_PROFILE), inspection)
    gpus = inspection["facts"].get("gpus", 0)
    not_tried = partial(batch_split.not_tried, trained, options, numerics, wanted.ranks, gpus)
    narrowed, _ = narrow(space, inspection, numerics, not_tried)  # before anything is recorded: it may leave nothing
    shipped, left_out = (
        ([], [])
        if tuning.space_only
        else shipped_profiles.shipped(SHIPPED_FOLDER, inspection, numerics, space.first, not_tried)
    )
    require_candidates(narrowed, baseline, inspection, one_by_one=tuning.settings.blocks > 0, alone=not shipped)
    data = requirements.data(wanted.data, wanted.own_workloads)
    study, steps = lengths(wanted.completed(data.location))
    fields = {
        "schema": record.SCHEMA,
        "kit_version": __version__,
        "command": sys.argv,
        "settings": asdict(tuning.settings),
        "trial_steps": steps,
        "space": space.name,
        "space_sha256": space_sha256,
        "study": study.to_json(),
        "engines": recorded(context.seen),
        "data_source": data.source.to_json(),
        "baseline": baseline.to_json(),
        "shipped": [
            {"profile": profile_file.to_json(candidate.profile), "environment": candidate.environment.to_json()}
            for candidate in shipped
        ],
        "left_out_profiles": [reason.to_json() for reason in left_out],
        "removed_variables": context.removed,
        "allowed_variables": seal.value_digests(context.kept, context.kept),
    }
    return fields, context


def session_of(
    opened: Record,
    events: list[Event],
    context: ExecutionContext,
    quiet: bool,
    peers: Peers | None = None,
    turn: int = 0,
    profile: Path | None = None,
) -> Session:
    """The tuning that a record has begun, to go on with. Raises InputError for a damaged record.

    Each of several nodes, its ``peers``, begins with the shipped profiles whose ``turn`` it is there.

    ``events[0]``, which decides what is started, must be this user's own, or found here anew; and the profile goes to
    ``profile``, where that is given.
    """
    first, folder = events[0], opened.path.parent
    resuming.require_numbers(folder, events)
    with record.reading(folder):
        study = Study.from_json(first["study"])
        settings = SearchSettings(**first["settings"])
        settings = replace(settings, profile=settings.profile if profile is None else str(profile))
        baseline = Environment.from_json(first["baseline"])
        inspection = of_rank(first["engines"][study.reference.engine]["inspection"], study.ranks)
        job = Job(study, {REFERENCE_PROFILE: baseline}, context)
        begin = _begin(from_json(first["data_source"]), inspection)
        trial_steps = int(first["trial_steps"])
        return Session(settings, trial_steps, job, inspection, opened, parse_all(events), begin, quiet, peers, turn)


def _begin(data_source: Message, inspection: Inspection) -> Begin:
    """Writes the first event of the confirmation's record."""

    def begin(opened: Record, job: Job) -> Event:
        inside = [(environment, of_rank(inspection, environment.ranks)) for environment in job.environments.values()]
        findings = preflight(inside, force=True)
        return begin_record(opened, Prepared(job, data_source, findings), measuring.results())

    return begin
