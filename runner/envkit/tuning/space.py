"""A space of environments: parameters with levels, when each counts, and what is never tried. Plain data.

A choice gives each parameter that counts one of its levels. The settings of the levels are merged into one profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from envkit.profiles import catalogue, needs
from envkit.profiles.profile import Profile, ProfileSettings

Choice = dict[str, str]
UNSET = "unset"
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Fragment(ProfileSettings):
    """The settings of one level of a parameter."""

    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by variable, keys that are merged
    ranks: int = 0  # above 0: how many processes train together


@dataclass(frozen=True)
class Parameter:
    """A setting that is varied. It counts only if each parameter in ``when`` has one of the levels named there."""

    name: str
    levels: Mapping[str, Fragment]
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def counts(self, choice: Choice) -> bool:
        return _matches(self.when, choice)


@dataclass(frozen=True)
class Constraint:
    """``never`` has parameters and levels that are not tried together."""

    never: Mapping[str, tuple[str, ...]]
    because: str

    def broken(self, choice: Choice) -> bool:
        return _matches(self.never, choice)


@dataclass(frozen=True)
class Space:
    """Parameters stand after those that their ``when`` names. ``first`` are the shipped profiles to try first where
    no more is known.
    """

    name: str
    title: str
    path: Path
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()
    first: tuple[str, ...] = ()


def _matches(wanted: Mapping[str, tuple[str, ...]], choice: Choice) -> bool:
    return all(choice.get(name) in levels for name, levels in wanted.items())


def choices(space: Space) -> Iterator[Choice]:
    """All choices that break no constraint, one by one; there can be very many."""
    return _extended(space, 0, {})


def _extended(space: Space, at: int, choice: Choice) -> Iterator[Choice]:
    if at == len(space.parameters):
        yield choice
        return
    parameter = space.parameters[at]
    counts = parameter.counts(choice)
    for chosen in [{**choice, parameter.name: level} for level in parameter.levels] if counts else [choice]:
        if allowed(space, chosen):
            yield from _extended(space, at + 1, chosen)


def allowed(space: Space, choice: Choice) -> bool:
    return not any(constraint.broken(choice) for constraint in space.constraints)


def profile(space: Space, choice: Choice, name: str) -> Profile | None:
    """Return what a choice sets, as a profile; None where two levels give one variable different values.

    Also None where no machine has what two levels need, and for a level that the space does not have, which a record or
    another node may name.
    """
    if any(
        choice[parameter.name] not in parameter.levels for parameter in space.parameters if parameter.name in choice
    ):
        return None
    chosen = [parameter.levels[choice[parameter.name]] for parameter in space.parameters if parameter.name in choice]
    env: dict[str, str] = {}
    settings: dict[str, dict[str, str]] = {}
    expect: dict[str, str | int | bool] = {}
    for fragment in chosen:
        if not (_merge(env, fragment.env) and _merge(expect, fragment.expect)):
            return None
        for variable, keys in fragment.settings.items():
            if not _merge(settings.setdefault(variable, {}), keys):
                return None
    ranks = {fragment.ranks for fragment in chosen if fragment.ranks}
    needed = needs.together(fragment.needs for fragment in chosen)
    if env.keys() & settings.keys() or len(ranks) > 1 or needed is None:
        return None
    return Profile(
        name=name,
        title=shown(choice),
        reason="",
        source=str(space.path),
        extends=None,
        preload=tuple(dict.fromkeys(library for fragment in chosen for library in fragment.preload)),
        env={**env, **{variable: _joined(variable, keys) for variable, keys in settings.items()}},
        prefix=tuple(part for fragment in chosen for part in fragment.prefix),
        expect=expect,
        numerics="may-differ" if any(fragment.numerics == "may-differ" for fragment in chosen) else "same",
        path=space.path,
        needs=needed,
        ranks=max(ranks, default=1),
    )


def nearest(space: Space, wanted: Profile) -> Choice | None:
    """Choose of each parameter the level that sets most of what ``wanted`` sets, and nothing else.

    The choice comes to ``wanted`` itself if the space has that. None if a parameter has no such level.
    """
    choice: Choice = {}
    for parameter in space.parameters:
        if not parameter.counts(choice):
            continue
        sizes = {level: size for level, part in parameter.levels.items() if (size := _within(part, wanted)) is not None}
        if not sizes:
            return None
        choice[parameter.name] = max(sizes, key=lambda level: sizes[level])
    return choice


def _within(part: Fragment, wanted: Profile) -> int | None:
    """How much a level sets, or None if that is not all in ``wanted``."""
    held = [
        set(part.preload) <= set(wanted.preload),
        part.env.items() <= wanted.env.items(),
        part.prefix in ((), wanted.prefix),
        part.ranks in (0, wanted.ranks),
        *(keys.items() <= _keys(variable, wanted).items() for variable, keys in part.settings.items()),
    ]
    keys = sum(map(len, part.settings.values()))
    return len(part.preload) + len(part.env) + len(part.prefix) + keys if all(held) else None


def _keys(variable: str, wanted: Profile) -> dict[str, str]:
    """The keys and values of a variable that has some; the reverse of `_joined`."""
    kind = catalogue.load()[variable].kind
    pairs = (part.partition(kind.assign) for part in wanted.env.get(variable, "").split(kind.separator))
    return {key.strip(): value.strip() for key, _, value in pairs}


def shown(choice: Choice) -> str:
    """A choice in one line, without what it leaves alone."""
    return ", ".join(f"{name}={level}" for name, level in choice.items() if level != UNSET) or "nothing set"


def _merge(into: dict[str, Value], added: Mapping[str, Value]) -> bool:
    """Return whether no key had another value."""
    if any(into.get(key, value) != value for key, value in added.items()):
        return False
    into.update(added)
    return True


def _joined(variable: str, keys: Mapping[str, str]) -> str:
    kind = catalogue.load()[variable].kind
    return kind.separator.join(f"{key}{kind.assign}{value}" for key, value in keys.items())
