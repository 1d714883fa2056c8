"""A space of environments: knobs with labels, when each counts, and what is never tried. Plain data.

A choice gives each knob that counts one of its labels. What the labels set is merged into one profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner import catalogue
from runner.profile import Numerics, Profile

Choice = dict[str, str]
UNSET = "unset"


@dataclass(frozen=True)
class Fragment:
    """What one label of a knob sets. ``settings`` has, by variable, keys and values, which are merged key by key.

    ``needs`` has host facts and how much of each there must be at least for the label to mean anything. ``ranks`` above
    0 is how many processes train together.
    """

    preload: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    expect: Mapping[str, str | int | bool] = field(default_factory=dict)
    numerics: Numerics = "same"
    needs: Mapping[str, int] = field(default_factory=dict)
    ranks: int = 0


@dataclass(frozen=True)
class Knob:
    """``when`` has other knobs and those of their labels with which this knob counts: all must agree."""

    name: str
    labels: Mapping[str, Fragment]
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def counts(self, choice: Choice) -> bool:
        return _matches(self.when, choice)


@dataclass(frozen=True)
class Constraint:
    """``never`` has knobs and labels that are not tried together."""

    never: Mapping[str, tuple[str, ...]]
    because: str

    def broken(self, choice: Choice) -> bool:
        return _matches(self.never, choice)


@dataclass(frozen=True)
class Space:
    """Knobs stand behind those that their ``when`` names. ``first`` are the shipped profiles to look at first."""

    name: str
    title: str
    path: Path
    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...] = ()
    first: tuple[str, ...] = ()


def _matches(wanted: Mapping[str, tuple[str, ...]], choice: Choice) -> bool:
    return all(choice.get(knob) in labels for knob, labels in wanted.items())


def choices(space: Space) -> Iterator[Choice]:
    """All choices that break no constraint, one by one; there can be very many."""
    yield from _extended(space, 0, {})


def _extended(space: Space, at: int, choice: Choice) -> Iterator[Choice]:
    if at == len(space.knobs):
        yield dict(choice)
        return
    knob = space.knobs[at]
    if not knob.counts(choice):
        yield from _extended(space, at + 1, choice)
        return
    for label in knob.labels:
        chosen = {**choice, knob.name: label}
        if not any(constraint.broken(chosen) for constraint in space.constraints):
            yield from _extended(space, at + 1, chosen)


def allowed(space: Space, choice: Choice) -> bool:
    return not any(constraint.broken(choice) for constraint in space.constraints)


def profile(space: Space, choice: Choice, name: str) -> Profile | None:
    """What a choice sets, as a profile; None where two labels give one variable different values."""
    chosen = [knob.labels[choice[knob.name]] for knob in space.knobs if knob.name in choice]
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
    if env.keys() & settings.keys() or len(ranks) > 1:
        return None
    return Profile(
        name=name,
        title=shown(choice),
        reason=f"A candidate of the space '{space.name}'.",
        source=str(space.path),
        extends=None,
        preload=tuple(dict.fromkeys(library for fragment in chosen for library in fragment.preload)),
        env={**env, **{variable: _joined(variable, keys) for variable, keys in settings.items()}},
        prefix=tuple(part for fragment in chosen for part in fragment.prefix),
        expect=expect,
        numerics="may-differ" if any(fragment.numerics == "may-differ" for fragment in chosen) else "same",
        path=space.path,
        needs={fact: max(one.needs.get(fact, 0) for one in chosen) for one in chosen for fact in one.needs},
        ranks=max(ranks, default=1),
    )


def nearest(space: Space, wanted: Profile) -> Choice | None:
    """Of each knob the label that sets most of what ``wanted`` sets, and nothing else; None where a knob has none.

    It is ``wanted`` itself if the space has that.
    """
    choice: Choice = {}
    for knob in space.knobs:
        if not knob.counts(choice):
            continue
        sizes = {label: size for label, part in knob.labels.items() if (size := _within(part, wanted)) is not None}
        if not sizes:
            return None
        choice[knob.name] = max(sizes, key=lambda label: sizes[label])
    return choice


def _within(part: Fragment, wanted: Profile) -> int | None:
    """How much a label sets, or None if that is not all in ``wanted``."""
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
    return ", ".join(f"{knob}={label}" for knob, label in choice.items() if label != UNSET) or "nothing set"


def _merge(into: dict[str, Any], added: Mapping[str, Any]) -> bool:
    """Whether no key had another value."""
    if any(into.get(key, value) != value for key, value in added.items()):
        return False
    into.update(added)
    return True


def _joined(variable: str, keys: Mapping[str, str]) -> str:
    kind = catalogue.load()[variable].kind
    return kind.separator.join(f"{key}{kind.assign}{value}" for key, value in keys.items())
