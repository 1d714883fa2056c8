"""Narrow a space, before anything is measured, to what can have an effect on the machine that was inspected."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from envkit.checks.doctor.finding import Situation
from envkit.checks.doctor.profile_findings import PROFILE_CHECKS
from envkit.checks.messages import Spoils, Worthless
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.profiles import catalogue
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.messages import CantBeUsed, DoesNotApply
from envkit.profiles.profile import Numerics, Profile
from envkit.profiles.resolve import of_rank, resolve
from envkit.profiles.values import Kind
from envkit.tuning.messages import MayChangeResults, NothingToTry, NothingToVary, SameAs, TooManyCandidates
from envkit.tuning.space import Choice, Constraint, Fragment, Parameter, Space, choices, profile

NotTried = Callable[[int], Message | None]

# More candidates than this are not for measuring one by one.
MOST_EXHAUSTIVE = 500


@dataclass(frozen=True)
class LeftOut:
    """A level (``allocator=jemalloc``) or a profile (``profile tcmalloc``) that is not tried, and why."""

    what: str
    why: Message

    def to_json(self) -> dict[str, object]:
        return {"what": self.what, "why": self.why.to_json()}


def narrow(
    space: Space, inspection: Inspection, numerics: str, not_tried: NotTried = lambda ranks: None
) -> tuple[Space, list[LeftOut]]:
    """Return the space without the levels that can't apply here, and those levels.

    ``numerics`` is ``same`` or ``any``; ``not_tried`` says why so many ranks are left out, or None. Of levels that come
    to the same here, such as two ways to count cores, the first stands for all. Raises InputError where nothing is
    left.
    """
    left_out: list[LeftOut] = []
    parameters: list[Parameter] = []
    stands_for: dict[tuple[str, str], str] = {}  # (parameter, level) -> the level in whose place it is tried
    for parameter in space.parameters:
        when = _renamed(parameter.when, stands_for)
        if not all(when.values()):
            continue
        kept: dict[str, Fragment] = {}
        alike: dict[str, str] = {}
        for level, fragment in parameter.levels.items():
            outcome = not_tried(fragment.ranks or 1) or _applies(space, parameter, level, inspection, numerics)
            if isinstance(outcome, Environment):
                first = alike.setdefault(identity(outcome), level)
                stands_for[parameter.name, level] = first
                if first == level:
                    kept[level] = fragment
                    continue
                outcome = SameAs(first)
            left_out.append(LeftOut(f"{parameter.name}={level}", outcome))
        if kept:
            parameters.append(replace(parameter, levels=kept, when=when))
    renamed = [
        Constraint(_renamed(constraint.never, stands_for), constraint.because) for constraint in space.constraints
    ]
    constraints = [constraint for constraint in renamed if all(constraint.never.values())]
    if all(len(parameter.levels) < 2 for parameter in parameters):
        raise InputError(
            NothingToVary(str(space.path), left_out[0].what, left_out[0].why)
            if left_out
            else NothingToVary(str(space.path))
        )
    return replace(space, parameters=tuple(parameters), constraints=tuple(constraints)), left_out


def require(profile: Profile, inspection: Inspection) -> Environment:
    """Return the environment of a profile that would have an effect here. Raise InputError for any other profile."""
    environment = resolve(profile, inspection)
    rank_inspection = of_rank(inspection, profile.ranks)
    catalogue.require(environment, rank_inspection)
    situation = Situation(
        rank_inspection["facts"], rank_inspection["fingerprint"], environment, libraries=rank_inspection["libraries"],
        accelerator=rank_inspection.get("accelerator", {}),
    )  # fmt: skip
    for check in PROFILE_CHECKS:
        finding = check(situation)
        if finding is not None and finding.severity in ("stop", "warn"):
            raise InputError(Spoils(finding.seen, finding.why))
    return environment


def why(error: InputError) -> Message:
    """Return the reason alone, without the name of the profile and what else could be chosen."""
    message = error.message
    return message.reason if isinstance(message, CantBeUsed | DoesNotApply | Worthless) else message


def differs(numerics: Numerics, wanted: str) -> Message | None:
    """Return why something that may change the results is not tried; None if it can't, or if that is ``wanted``."""
    return MayChangeResults() if numerics == "may-differ" and wanted == "same" else None


def identity(environment: Environment) -> str:
    """Return a key that is equal for environments that are the same for a worker, in whatever order they set it."""
    variables = {name: _ordered(name, value) for name, value in environment.variables.items()}
    return repr((sorted(variables.items()), environment.prefix, environment.ranks))


def _ordered(name: str, value: str) -> str:
    variable = catalogue.load().get(name)
    kind: Kind | None = variable.kind if variable else None
    return kind.separator.join(sorted(value.split(kind.separator))) if kind and kind.type == "settings" else value


def _renamed(
    named: Mapping[str, tuple[str, ...]], stands_for: dict[tuple[str, str], str]
) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(dict.fromkeys(stands_for[name, level] for level in levels if (name, level) in stands_for))
        for name, levels in named.items()
    }


def _applies(
    space: Space, parameter: Parameter, level: str, inspection: Inspection, numerics: str
) -> Environment | Message:
    """Return what a level alone sets here, or why it can't be tried."""
    if reason := differs(parameter.levels[level].numerics, numerics):
        return reason
    alone = replace(space, parameters=(replace(parameter, when={}),), constraints=())
    made = profile(alone, {parameter.name: level}, "level")
    assert made is not None, "one level can't contradict itself"
    try:
        return require(made, inspection)
    except InputError as error:
        return why(error)


def require_candidates(
    space: Space, baseline: Environment, inspection: Inspection, one_by_one: bool, alone: bool
) -> None:
    """Raise InputError for a space that is too large to be measured ``one_by_one``.

    Raise it, too, for a space with nothing to try but the baseline, if it is measured so, or searched ``alone``.
    """
    first = list(itertools.islice(choices(space), MOST_EXHAUSTIVE + 1))
    if len(first) > MOST_EXHAUSTIVE:  # and something of so many can be tried
        if one_by_one:
            raise InputError(TooManyCandidates(str(space.path), MOST_EXHAUSTIVE))
        return
    if (one_by_one or alone) and not any(_can_be_tried(space, choice, baseline, inspection) for choice in first):
        raise InputError(NothingToTry(str(space.path)))


def _can_be_tried(space: Space, choice: Choice, baseline: Environment, inspection: Inspection) -> bool:
    made = profile(space, choice, "candidate")
    try:
        return made is not None and identity(require(made, inspection)) != identity(baseline)
    except InputError:
        return False
