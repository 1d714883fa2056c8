"""``envkit matrix [PROFILE...]``: measure every profile that applies here against the baseline, and rank them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from envkit import engines
from envkit.bench import early_checks, requirements
from envkit.bench.arms import Arm, own_ranks
from envkit.bench.context import ExecutionContext, execution_context
from envkit.bench.job import Job
from envkit.bench.study import REFERENCE_PROFILE, Study
from envkit.checks.doctor import preflight
from envkit.cli import measuring, measuring_options, submission, submitted, trying
from envkit.cli.commands.help_messages import MATRIX
from envkit.cli.commands.messages import LeftOut, NoneLeft, SameName, SetsNothingHere
from envkit.cli.measuring import Invocation
from envkit.cli.messages import NothingToCompare
from envkit.cli.parser import Parser
from envkit.cluster import type_wording
from envkit.cluster.slurm import collect
from envkit.cluster.slurm.collect import NodeResult
from envkit.cluster.slurm.settings import Settings
from envkit.common.errors import FAILED, MEASURED, InputError
from envkit.common.folders import short
from envkit.common.machine_lock import machine_lock
from envkit.messages import Message
from envkit.profiles import catalogue, profile
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import of_rank, resolve
from envkit.rendering import text
from envkit.report import terminal
from envkit.report.parts import together
from envkit.tuning.narrow import identity, why

# As much for each profile as `bench` has; the more profiles share one error rate, the more blocks an interval takes.
BUDGET_PER_PROFILE_S = 120.0


@dataclass
class Choice:
    """The profiles to measure, and the reasons why others are left out."""

    # By what the record calls it, as `physical-cores = mine` for those that are measured as one: its name or file as it
    # was given, and what it comes to.
    measured: dict[str, tuple[str, Environment]] = field(default_factory=dict)
    left_out: dict[str, Message] = field(default_factory=dict)  # of the others why, by their names


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="*",
                        help="names of profiles, or YAML files (default: all shipped profiles). The report names those "
                        "that do not apply here, fail, or are not in effect")  # fmt: skip
    measuring_options.add(parser, budget=MATRIX["budget"])
    measuring_options.add_keep_arms(parser)
    measuring_options.add_max_memory(parser)
    submission.add_job_options(parser, MATRIX["nodelist"], MATRIX["nodes"])


def run(arguments: argparse.Namespace) -> int:
    if submission.is_given(arguments):
        return submission.run(arguments, _show_nodes(arguments.json), settings=_settings)
    invocation = measuring.invocation(arguments)
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, invocation)
    return measure(_study(arguments), arguments.profile or profile.names(), invocation)


def _study(arguments: argparse.Namespace) -> Study:
    reference = Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, arguments.engine or "local")
    return replace(
        measuring_options.study(arguments, "matrix", [reference], drop_arms=not arguments.keep_arms), nodes=1
    )


def _settings(arguments: argparse.Namespace) -> Settings:
    """Return what is submitted. Raises InputError for what no node could measure."""
    submitted.engine_on_nodes(arguments)
    names = [name for name in arguments.profile or profile.names() if name != REFERENCE_PROFILE]
    for name in names:
        profile.load(name)
    study = submitted.anywhere(arguments, _study(arguments))
    # nodes are compared by equal numbers of samples
    study = replace(study, stopping=replace(study.stopping, drop_arms=False))
    requirements.require(study)
    if study.stopping.open_ended and not study.epochs and not study.stopping.blocks:
        study = study.with_stopping(budget_s=BUDGET_PER_PROFILE_S * (len(names) + 1))
    nodelist = submitted.named_nodes(arguments)
    job = submitted.job(arguments, study, submitted.of_job(arguments.nodes, nodelist), nodelist)
    return replace(job, profiles=tuple(submitted.anywhere_named(names)))


def _show_nodes(as_json: bool) -> submission.Show:
    def show(settings: Settings, folder: Path, results: Sequence[NodeResult], document: dict[str, object]) -> int:
        verdict = collect.verdict(folder, settings, results)
        if as_json:
            print(json.dumps(document))
        elif verdict is not None:
            terminal.show_parts(type_wording.page_parts(verdict, short(folder)), terminal.console())
        return MEASURED if verdict else FAILED

    return show


def measure(study: Study, named: Sequence[str], invocation: Invocation) -> int:
    """Measure all that apply of the profiles ``named``; ``study`` has the reference alone. Returns the exit status."""
    if invocation.resume is None:
        _require_early(study, named, invocation)
    with machine_lock():  # for trying and measuring: nothing else is to begin between the two
        engines.remove_leftovers()
        return _try_and_measure(study, named, invocation)


def _require_early(study: Study, named: Sequence[str], invocation: Invocation) -> None:
    """Raise InputError for what can be told wrong before anything starts."""
    loaded = [profile.load(name) for name in dict.fromkeys(named)]
    if {chosen.name for chosen in loaded} <= {REFERENCE_PROFILE}:
        raise InputError(NothingToCompare(REFERENCE_PROFILE))
    early_checks.require(study, invocation.output)
    early_checks.require_time(study, 1 + max(1, len(early_checks.applying(loaded))))


def _try_and_measure(study: Study, named: Sequence[str], invocation: Invocation) -> int:
    """Measure those of the profiles ``named`` that apply here. ``study`` has the reference as its only arm."""
    loaded = {name: profile.load(name) for name in dict.fromkeys(named) if name != REFERENCE_PROFILE}
    engine = study.arms[0].engine
    prefixes = {chosen.prefix[0] for chosen in loaded.values() if chosen.prefix}
    requirements.require(study)
    context = execution_context(study, [*sorted(prefixes), *requirements.tools(study.options)])
    requirements.require_in(context.seen, study.own_workloads, study.options)

    def require_ranks(environment: Environment) -> None:
        arm = Arm(environment.profile, environment.profile, engine, ranks=own_ranks(environment.ranks))
        trained = None if study.user_command else study.workload
        requirements.require_shares([arm], trained, study.options, 1)
        requirements.require_gpus(context.seen, environment.ranks, study.options)

    inspection = context.seen[engine]["inspection"]
    choice = choose(loaded, inspection, study, require_ranks)
    if invocation.resume is None:
        try_once(choice, study, context, invocation)
    else:  # each was tried when the run began
        for name, reason in measuring.recorded_left_out(invocation.resume).items():
            if choice.measured.pop(name, None):
                choice.left_out[name] = reason
    for names, reason in together(choice.left_out).items():
        print(text(LeftOut(reason, names)), file=sys.stderr)
    if not choice.measured:
        raise InputError(NoneLeft(tuple(choice.left_out)))
    study = study.with_arms(arms_of(choice, engine))
    if study.stopping.open_ended and not study.epochs:
        study = study.with_stopping(budget_s=BUDGET_PER_PROFILE_S * len(study.arms))
    return measuring.run_locked(study, invocation, left_out=choice.left_out)


def arms_of(choice: Choice, engine: str) -> list[Arm]:
    arms = [Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, engine)]
    for name, (name_or_file, environment) in choice.measured.items():
        arms.append(Arm(name, name_or_file, engine, ranks=own_ranks(environment.ranks)))
    return arms


def choose(
    loaded: Mapping[str, Profile],
    inspection: Inspection,
    study: Study,
    require: Callable[[Environment], None],
) -> Choice:
    """Return the profiles that can be measured in the inspected image, of those ``loaded`` by name or file.

    ``require`` raises InputError for a profile that can't train the workload. Profiles that set the same here are
    measured once, under all their names. Raise InputError for two different profiles of one name.
    """
    choice = Choice()
    alike: dict[str, list[str]] = {}
    resolved: dict[str, tuple[str, Environment]] = {}
    for name_or_file, chosen in loaded.items():
        if chosen.name in {*choice.left_out, *resolved, REFERENCE_PROFILE}:
            raise InputError(SameName(name_or_file, chosen.name))
        try:
            environment = resolve(chosen, inspection)
            inside = of_rank(inspection, environment.ranks)
            catalogue.require(environment, inside, study.allow_unknown)
            preflight([(environment, inside)], study.force)
            require(environment)
        except InputError as error:
            choice.left_out[chosen.name] = why(error)
            continue
        if not environment.variables and not environment.prefix:
            choice.left_out[chosen.name] = SetsNothingHere(REFERENCE_PROFILE)
            continue
        resolved[chosen.name] = name_or_file, environment
        alike.setdefault(identity(environment), []).append(chosen.name)
    choice.measured |= {" = ".join(names): resolved[names[0]] for names in alike.values()}
    return choice


def try_once(choice: Choice, study: Study, context: ExecutionContext, invocation: Invocation) -> None:
    """Leave out each profile whose worker fails, or in which it is not in effect, when it trains for one step.

    It would end the whole run, and with it what there is to say of all others. A user's command runs to its end. Where
    the baseline fails nothing is left out: the run will end with that.
    """
    if not choice.measured:
        return
    engine = study.arms[0].engine
    data = requirements.data(study.data, study.own_workloads)
    study = study.with_arms(arms_of(choice, engine)).completed(data.location)
    baseline = resolve(profile.load(REFERENCE_PROFILE), context.seen[engine]["inspection"])
    environments = {name: environment for name, (_, environment) in choice.measured.items()}
    job = Job(study, {REFERENCE_PROFILE: baseline, **environments}, context)
    for name, reason in trying.problems(job, quiet=invocation.quiet).items():
        choice.left_out[name] = reason
        del choice.measured[name]
