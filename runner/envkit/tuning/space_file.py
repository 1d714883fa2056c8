"""Read a space of settings from YAML, and refuse what would search for nothing or for something else than was meant."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from envkit.common import schema, yamlfile
from envkit.common.errors import InputError
from envkit.common.suggestion import nearest
from envkit.common.yamlfile import Path_, YamlFile
from envkit.profiles import catalogue, code_variables, profile
from envkit.profiles.expressions import FACTS, ExpressionError, expand
from envkit.profiles.profile import Numerics
from envkit.profiles.setting_messages import BadValue, InVain, Write
from envkit.profiles.values import Kind, SettingsError, refusal
from envkit.tuning import space as spaces
from envkit.tuning.space import UNSET, Constraint, Fragment, Parameter, Space, choices
from envkit.tuning.space_messages import (  # fmt: skip
    CONSTRAINT_NAMES,
    COUNTS_WHEN,
    DuplicateValue,
    EmptySpace,
    ExcludesAll,
    FromPreload,
    NeverApplies,
    NotInCatalogue,
    ParameterBelow,
    SetTwice,
    TakesNoKeys,
    UnknownFirst,
    UnknownLevel,
    UnknownParameter,
    UnknownSetting,
    UnknownSpace,
)  # fmt: skip
from envkit.worker.libraries import LIBRARIES, of_kind, preloadable

FOLDER = Path(__file__).resolve().parent / "spaces"
SCHEMA = FOLDER.parent / "schemas/space.schema.json"
# Any machine's facts do to check a value; so many leave room for "one less" and "half of them".
_SAMPLE_FACTS = dict.fromkeys(FACTS, 8)

# What every worker has: the level without a preloaded library expects the one that is a part of it.
ALWAYS = ("torch", "glibc")
# So many choices are looked at for one that holds, before a space is called empty.
MOST_CHOICES = 20_000


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(name: str) -> Path:
    """Return the file of the space called ``name``, or ``name`` itself if it ends in ``.yaml``. Raise InputError."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise InputError(UnknownSpace(name, tuple(names()), nearest(name, names())))
    return path


def read(path: Path) -> Space:
    """Return the space in ``path``. Raise InputError naming file, line, key and fix."""
    file = yamlfile.read(path, "a space")
    schema.validate(file, SCHEMA, profile.SCHEMA)
    for at, text in file.texts.items():
        if at[0] == "parameters":
            _expanded(file, at, text)
    parameters: list[Parameter] = []
    for name in file.data["parameters"]:
        parameters.append(_parameter(file, name, parameters))
    space = Space(file.data["name"], file.data["title"], path, tuple(parameters), first=_first(file))
    space = replace(space, constraints=_constraints(file, space))
    if all(spaces.profile(space, choice, "x") is None for choice in itertools.islice(choices(space), MOST_CHOICES)):
        raise file.error(("constraints",), EmptySpace())
    return space


def _first(file: YamlFile) -> tuple[str, ...]:
    names, known_names = file.data.get("first", []), profile.names()
    for index, name in enumerate(names):
        if name not in known_names:
            raise file.error(("first", index), UnknownFirst(str(name), nearest(str(name), known_names)))
    return tuple(names)


def _parameter(file: YamlFile, name: str, earlier: list[Parameter]) -> Parameter:
    at: Path_ = ("parameters", name)
    entry = file.data["parameters"][name]
    if "variable" in entry:
        levels = _values(file, at, entry)
    else:
        levels = _of_kind(entry["libraries"]) if "libraries" in entry else {}
        for level, sets in entry.get("choices", {}).items():
            levels[level] = _fragment(file, (*at, "choices", level), sets)
    others = file.data["parameters"].keys() - {name}
    when = _named(file, (*at, "when"), entry.get("when", {}), earlier, COUNTS_WHEN, others)
    return Parameter(name, levels, when)


def _of_kind(kind: str) -> dict[str, Fragment]:
    """Return a level without a preloaded library of this kind, and one for each that can be preloaded."""
    there = next((library.shows for library in of_kind(kind).values() if library.comes_with in ALWAYS), None)
    levels = {there[1]: Fragment(expect=dict([there]))} if there else {UNSET: Fragment()}
    for name, library in preloadable(kind).items():
        levels[library.shows[1]] = Fragment(preload=(name,), expect=dict([library.shows]))
    return levels


class VariableEntry(TypedDict, total=False):
    """A parameter of a space's file that gives a variable, or one of its keys, one value after another."""

    variable: str
    key: str
    values: list[object]
    numerics: Numerics


def _values(file: YamlFile, at: Path_, entry: VariableEntry) -> dict[str, Fragment]:
    variable, key, numerics = entry["variable"], entry.get("key"), entry.get("numerics", "same")
    kind = _kind(file, (*at, "variable"), variable)
    if key is not None:
        kind = _inner_kind(file, (*at, "key"), variable, key, kind)
    levels: dict[str, Fragment] = {}
    for index in range(len(entry["values"])):
        where = (*at, "values", index)
        text = file.texts[where]
        if text in levels:
            raise file.error(where, DuplicateValue(text, str(at[-1])))
        if text == UNSET:
            levels[text] = Fragment()
            continue
        if key is None and (refused := code_variables.problem(variable, text)):
            raise file.error(where, refused)
        _check_value(file, where, variable if key is None else f"{variable}'s {key}", kind, text)
        if key is None:
            levels[text] = Fragment(env={variable: text}, numerics=numerics)
        else:
            levels[text] = Fragment(settings={variable: {key: text}}, numerics=numerics)
    return levels


def _named(
    file: YamlFile,
    at: Path_,
    entries: Mapping[str, list[object]],
    parameters: list[Parameter],
    subject: str,
    later: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Return the parameters that ``subject`` names, with levels of each. Raise InputError if one is not there."""
    levels_of = {parameter.name: parameter.levels for parameter in parameters}
    named: dict[str, tuple[str, ...]] = {}
    for name, values in entries.items():
        where = (*at, name)
        if name not in levels_of:
            if name in later:
                raise file.error(where, ParameterBelow(subject, name))
            raise file.error(where, UnknownParameter(subject, name, nearest(name, levels_of)))
        named[name] = tuple(file.text(*where, index) for index in range(len(values)))
        for index, text in enumerate(named[name]):
            if text not in levels_of[name]:
                levels = tuple(levels_of[name])
                raise file.error((*where, index), UnknownLevel(subject, name, text, levels, nearest(text, levels)))
    return named


def _constraints(file: YamlFile, space: Space) -> tuple[Constraint, ...]:
    constraints = []
    for index, entry in enumerate(file.data.get("constraints", [])):
        at: Path_ = ("constraints", index)
        never = _named(file, (*at, "never"), entry["never"], list(space.parameters), CONSTRAINT_NAMES)
        constraint = Constraint(never, entry["because"])
        broken = {constraint.broken(choice) for choice in choices(_about(space, never))}
        if broken == {True}:
            raise file.error(at, ExcludesAll())
        if True not in broken:
            raise file.error(at, NeverApplies())
        constraints.append(constraint)
    return tuple(constraints)


def _about(space: Space, named: Mapping[str, object]) -> Space:
    """The parameters named, and those on which they depend, alone: few choices, however large the space is."""
    wanted = set(named)
    for parameter in reversed(space.parameters):
        if parameter.name in wanted:
            wanted |= set(parameter.when)
    return replace(
        space, parameters=tuple(parameter for parameter in space.parameters if parameter.name in wanted), constraints=()
    )


def _fragment(file: YamlFile, at: Path_, sets: object) -> Fragment:
    if not isinstance(sets, dict):  # nothing, or `unset`
        return Fragment()
    texts = {where: _expanded(file, where, text) for where, text in file.texts.items() if where[: len(at)] == at}
    profile.require_libraries(file, at, sets.get("preload"))
    profile.require_no_code(file, at, sets.get("env"), sets.get("prefix"), texts)
    env = {name: file.text(*at, "env", name) for name in sets.get("env", {})}
    for name, text in env.items():
        where: Path_ = (*at, "env", name)
        _check_value(file, where, name, _kind(file, where, name), text)
    settings: dict[str, dict[str, str]] = {}
    for name, keys in sets.get("settings", {}).items():
        where = (*at, "settings", name)
        kind = _kind(file, where, name)
        if name in env:
            raise file.error(where, SetTwice(name))
        settings[name] = {key: file.text(*where, key) for key in keys}
        for key, text in settings[name].items():
            inner = _inner_kind(file, (*where, key), name, key, kind)
            _check_value(file, (*where, key), f"{name}'s {key}", inner, text)
    shown = dict(LIBRARIES[name].shows for name in sets.get("preload", ()) if LIBRARIES[name].shows[0])
    return Fragment(
        preload=tuple(sets.get("preload", ())),
        env=env,
        settings=settings,
        prefix=tuple(file.text(*at, "prefix", index) for index in range(len(sets.get("prefix", ())))),
        expect={**shown, **sets.get("expect", {})},
        numerics=sets.get("numerics", "same"),
        needs=sets.get("needs", {}),
        ranks=sets.get("ranks", 0),
    )


def _kind(file: YamlFile, at: Path_, name: str) -> Kind:
    variable = catalogue.load().get(name)
    if name == "LD_PRELOAD":
        raise file.error(at, FromPreload(name))
    if variable is None:
        raise file.error(at, NotInCatalogue(name, catalogue.nearest(name)))
    return variable.kind


def _inner_kind(file: YamlFile, at: Path_, variable: str, key: str, kind: Kind) -> Kind:
    if not kind.keys:
        raise file.error(at, TakesNoKeys(variable, key))
    if key not in kind.keys:
        raise file.error(at, UnknownSetting(variable, key, nearest(key, kind.keys)))
    return kind.keys[key]


def _check_value(file: YamlFile, at: Path_, subject: str, kind: Kind, text: str) -> None:
    try:
        refused = refusal(kind, _expanded(file, at, text))
    except SettingsError as error:
        raise file.error(at, InVain(subject, error.message, error.fix)) from None
    if refused is not None:
        raise file.error(at, InVain(subject, BadValue(text, refused), Write(kind.allowed())))


def _expanded(file: YamlFile, at: Path_, text: str) -> str:
    try:
        return expand(text, _SAMPLE_FACTS)
    except ExpressionError as error:
        raise file.error(at, error.message) from None
