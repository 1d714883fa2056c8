"""Narrow a space, before anything is measured, to what can have an effect on the machine that was inspected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from runner import catalogue
from runner.doctor.finding import Situation
from runner.doctor.profile import PROFILE_CHECKS
from runner.environment import Environment
from runner.errors import InputError
from runner.profile import Numerics, Profile
from runner.resolve import of_rank, resolve
from runner.tuning.space import Constraint, Fragment, Knob, Space, profile
from runner.values import Kind

NotTried = Callable[[int], str | None]


@dataclass(frozen=True)
class LeftOut:
    """What is not tried, and why, in one line."""

    what: str
    why: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def narrow(
    space: Space, inspection: Mapping[str, Any], numerics: str, not_tried: NotTried = lambda ranks: None
) -> tuple[Space, list[LeftOut]]:
    """The space without labels that can't apply here, and those labels.

    ``numerics`` is ``same`` or ``any``; ``not_tried`` says why so many ranks are left out, or None. Of labels that come
    to the same here, such as two ways to count cores, the first stands for all. Raises InputError where nothing is
    left.
    """
    left_out: list[LeftOut] = []
    knobs: list[Knob] = []
    stands_for: dict[tuple[str, str], str] = {}  # (knob, label) -> the label in whose place it is tried
    for knob in space.knobs:
        when = _renamed(knob.when, stands_for)
        if not all(when.values()):
            continue
        kept: dict[str, Fragment] = {}
        alike: dict[str, str] = {}
        for label, fragment in knob.labels.items():
            alone = replace(space, knobs=(replace(knob, when={}),), constraints=())
            reason = not_tried(fragment.ranks or 1)
            if reason is not None:
                left_out.append(LeftOut(f"{knob.name}={label}", reason))
                continue
            environment, why = _applies(alone, {knob.name: label}, fragment, inspection, numerics)
            if environment is None:
                left_out.append(LeftOut(f"{knob.name}={label}", why))
                continue
            first = alike.setdefault(identity(environment), label)
            stands_for[knob.name, label] = first
            if first == label:
                kept[label] = fragment
            else:
                left_out.append(LeftOut(f"{knob.name}={label}", f"comes to the same as {first} here"))
        if kept:
            knobs.append(replace(knob, labels=kept, when=when))
    constraints = []
    for constraint in space.constraints:
        never = _renamed(constraint.never, stands_for)
        if all(never.values()):
            constraints.append(Constraint(never, constraint.because))
    if all(len(knob.labels) < 2 for knob in knobs):
        first_reason = f": {left_out[0].what}: {left_out[0].why}" if left_out else ""
        raise InputError(f"{space.path}: nothing of this space can be varied here{first_reason}; give another space")
    return replace(space, knobs=tuple(knobs), constraints=tuple(constraints)), left_out


def require(profile: Profile, inspection: Mapping[str, Any]) -> Environment:
    """The environment of a profile that would have an effect here. Raises InputError for one that would not."""
    environment = resolve(profile, inspection)
    inspection = of_rank(inspection, profile.ranks)
    catalogue.require(environment, inspection)
    situation = Situation(
        inspection["facts"], inspection["fingerprint"], environment, libraries=inspection["libraries"],
        accelerator=inspection.get("accelerator", {}),
    )  # fmt: skip
    for check in PROFILE_CHECKS:
        finding = check(situation)
        if finding is not None and finding.severity in ("stop", "warn"):
            raise InputError(f"{finding.seen}: {finding.why}")
    return environment


def why(name: str, error: InputError) -> str:
    """The reason alone, without the name of the profile and what else could be chosen."""
    return str(error).removeprefix(f"profile '{name}'").lstrip(":, ").partition(": it does not apply")[0]


def differs(numerics: Numerics, wanted: str) -> bool:
    """Whether what may change the results is not wanted."""
    return numerics == "may-differ" and wanted == "same"


def identity(environment: Environment) -> str:
    """What two environments have in common if they are the same for a worker, however their settings are ordered."""
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
        knob: tuple(dict.fromkeys(stands_for[knob, label] for label in labels if (knob, label) in stands_for))
        for knob, labels in named.items()
    }


def _applies(
    alone: Space, choice: dict[str, str], fragment: Fragment, inspection: Mapping[str, Any], numerics: str
) -> tuple[Environment | None, str]:
    """What a label alone sets here, or why it can't be tried."""
    if differs(fragment.numerics, numerics):
        return None, "may change the results; --numerics any tries it too"
    made = profile(alone, choice, "label")
    assert made is not None, "one label can't contradict itself"
    try:
        return require(made, inspection), ""
    except InputError as error:
        return None, why("label", error)
