"""``envkit ablate PROFILE``: which of a profile's settings makes it faster? Measures each alone, and all without it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from envkit import engines
from envkit.bench import early_checks, requirements
from envkit.bench.arms import Ablated, Arm, View, of_settings
from envkit.bench.context import ExecutionContext, execution_context
from envkit.bench.job import Job
from envkit.bench.study import REFERENCE_PROFILE, Study
from envkit.checks.doctor import preflight
from envkit.cli import measuring, measuring_options, trying
from envkit.cli.arguments import option
from envkit.cli.commands import messages
from envkit.cli.commands.help_messages import AblateBudget
from envkit.cli.measuring import Invocation
from envkit.cli.messages import NeedsProfile
from envkit.cli.parser import Parser
from envkit.common.errors import InputError
from envkit.common.machine_lock import machine_lock
from envkit.messages import Message
from envkit.profiles import ablation, catalogue, profile
from envkit.profiles.ablation import Setting
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import resolve
from envkit.rendering import text
from envkit.report.parts import together
from envkit.tuning.narrow import identity, why

BUDGET_PER_ARM_S = 90.0
REFUSED = ("full", "epochs", "until")
FOLDER = "profiles"  # in the record's folder: what was made of the profile, as files


@dataclass
class Parts:
    """The parts of a profile, by their names in the record. ``environments`` has the profile and the baseline too."""

    inspection: Inspection
    study: Study
    environments: dict[str, Environment] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    # By which arm each is measured: two that come to the same here are measured once, under the name of the first.
    arms: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, Message] = field(default_factory=dict)  # why the others are not measured

    def environment(self, candidate: Profile) -> Environment:
        """Return the environment of a profile here. Raise InputError if it can't be measured."""
        environment = resolve(candidate, self.inspection)
        catalogue.require(environment, self.inspection, self.study.allow_unknown)
        preflight([(environment, self.inspection)], self.study.force)
        return environment

    def add(self, name: str, candidate: Profile) -> None:
        try:
            environment = self.environment(candidate)
        except InputError as error:
            self.left_out[name] = why(error)
            return
        alike = (other for other, made in self.environments.items() if identity(made) == identity(environment))
        self.arms[name] = next(alike, name)
        if self.arms[name] == name:
            self.environments[name], self.profiles[name] = environment, candidate

    def leave_out(self, problems: Mapping[str, Message]) -> None:
        self.left_out |= problems
        self.arms = {name: arm for name, arm in self.arms.items() if arm not in problems}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", nargs="?", help="take apart this profile, or YAML file")
    measuring_options.add(parser, budget=text(AblateBudget(BUDGET_PER_ARM_S)), refused=REFUSED)


def run(arguments: argparse.Namespace) -> int:
    for name in REFUSED:
        if getattr(arguments, name):
            raise InputError(messages.NoInterval("ablate", option(name)))
    invocation = measuring.invocation(arguments)
    if measuring.goes_on_alone(arguments):
        return measuring.resume(arguments.resume, invocation)
    if arguments.profile is None:
        raise measuring.lacks_profile(arguments, NeedsProfile("ablate"))
    chosen, engine = _load(arguments.profile), arguments.engine or "local"
    arms = [Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, engine), Arm(chosen.name, arguments.profile, engine)]
    study = measuring_options.study(arguments, f"{chosen.name}-ablated", arms)
    if invocation.resume is None:
        early_checks.require(study, invocation.output)
        early_checks.require_time(study, len(arms) + len(ablation.settings(chosen)))
    with machine_lock():  # for trying and measuring: nothing else is to begin between the two
        engines.remove_leftovers()
        return _try_and_measure(study, chosen, invocation)


def _load(name: str) -> Profile:
    """Return the profile to take apart. Raise InputError if it has fewer than two settings, or several ranks."""
    chosen = profile.load(name)
    settings = ablation.settings(chosen)
    if chosen.name == REFERENCE_PROFILE:
        raise InputError(messages.NothingToAblate(name, messages.IS_REFERENCE))
    if not settings:
        raise InputError(messages.NothingToAblate(name, messages.SETS_NOTHING))
    if len(settings) == 1:
        raise InputError(messages.AblatesOneSetting(name, settings[0].name))
    if chosen.ranks > 1:
        raise InputError(messages.SeveralRanks(name, chosen.ranks, "ablate"))
    return chosen


def _try_and_measure(study: Study, chosen: Profile, invocation: Invocation) -> int:
    """``study`` has the baseline and the profile; the other arms follow from the profile's settings."""
    requirements.require(study)
    context = execution_context(study, [*chosen.prefix[:1], *requirements.tools(study.options)])
    requirements.require_in(context.seen, study.own_workloads, study.options)
    parts_of_profile = take_apart(chosen, context.seen[study.arms[0].engine]["inspection"], study)
    folder = (invocation.resume or invocation.output or measuring.new_folder(study.title)).absolute()
    files = {name: folder / FOLDER / f"{part.name}.yaml" for name, part in parts_of_profile.profiles.items()}
    arms = (*study.arms, *(Arm(name, str(path), study.arms[0].engine) for name, path in files.items()))
    settings = ablation.settings(chosen)
    if invocation.resume is None:
        tried = replace(study.with_arms(arms), view=View.SETTINGS, ablated=tuple(ablated(settings, parts_of_profile)))
        parts_of_profile.leave_out(_problems(tried, parts_of_profile, context, invocation))
    else:  # each was tried when the run began
        tried_then = {*parts_of_profile.arms} | {*parts_of_profile.arms.values()}
        recorded = measuring.recorded_left_out(invocation.resume)
        kept_out = recorded.keys() & tried_then - {chosen.name}
        parts_of_profile.leave_out({name: recorded[name] for name in recorded if name in kept_out})
    effects = ablated(settings, parts_of_profile)
    for names, reason in together(parts_of_profile.left_out).items():
        print(text(messages.LeftOut(reason, names)), file=sys.stderr)
    used = {name for effect in effects for name in (effect.alone, effect.beside, effect.without)} | {chosen.name}
    if not any(name in used for name in files):
        raise InputError(messages.AblatesNoPart(chosen.name))
    arms = tuple(arm for arm in arms if arm.name in used)
    contrasts = tuple(of_settings(arms, effects))
    study = replace(study.with_arms(arms), view=View.SETTINGS, contrasts=contrasts, ablated=tuple(effects))
    if study.stopping.open_ended:
        study = study.with_stopping(budget_s=BUDGET_PER_ARM_S * len(arms))
    made = {path: parts_of_profile.profiles[name] for name, path in files.items() if name in used}
    return measuring.run_locked(
        study, replace(invocation, output=folder), left_out=parts_of_profile.left_out, made=made
    )


def take_apart(chosen: Profile, inspection: Inspection, study: Study) -> Parts:
    """Return the parts of a profile. Raise InputError if the profile can't be measured in the inspected image."""
    parts_of_profile = Parts(inspection, study)
    for part in (profile.load(REFERENCE_PROFILE), chosen):
        parts_of_profile.environments[part.name] = parts_of_profile.environment(part)
    settings = ablation.settings(chosen)
    for setting in settings:
        parts_of_profile.add(setting.alone, ablation.alone(chosen, setting))
    for setting in settings:
        parts_of_profile.add(setting.without, ablation.without(chosen, setting))
    return parts_of_profile


def _problems(
    tried: Study, tried_parts: Parts, context: ExecutionContext, invocation: Invocation
) -> dict[str, Message]:
    """Try each part once, and return why some can't be measured. Raise InputError if the whole profile can't."""
    study = tried.completed(requirements.data(tried.data, tried.own_workloads).location)
    job = Job(study, tried_parts.environments, context)
    problems = trying.problems(job, quiet=invocation.quiet)
    complete = tried.arms[1]
    if complete.name in problems:
        raise InputError(messages.WholeFails(complete.name, problems[complete.name], complete.profile))
    return problems


def ablated(settings: list[Setting], measured_parts: Parts) -> list[Ablated]:
    """Return the arms that show the effect of each setting. A setting that needs a library is compared with it."""
    effects = []
    for setting in settings:
        alone, beside = measured_parts.arms.get(setting.alone), REFERENCE_PROFILE
        if alone is not None and setting.needs is not None:
            library = Setting(setting.needs, "library").alone
            if library in measured_parts.arms:
                beside = measured_parts.arms[library]
            else:
                measured_parts.left_out[setting.alone] = messages.LibraryLeftOut(library)
                alone = None
        effects.append(Ablated(setting.name, setting.needs, alone, beside, measured_parts.arms.get(setting.without)))
    return effects
