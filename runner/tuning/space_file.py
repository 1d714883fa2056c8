"""Read a space of settings from YAML, and refuse what would search for nothing or for something else than was meant."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner import catalogue, yamlfile
from runner.errors import InputError
from runner.expressions import FACTS, ExpressionError, expand
from runner.profile import EXPECTABLE
from runner.profile import names as shipped_names
from runner.suggestion import suggestion
from runner.tuning.space import UNSET, Constraint, Fragment, Knob, Space, choices, profile
from runner.values import Kind, SettingsError, refusal
from runner.worker.libraries import FILE_NAMES
from runner.yamlfile import Path_, YamlFile

FOLDER = Path(__file__).resolve().parent / "spaces"
KEYS = ("name", "title", "first", "knobs", "constraints")
KNOB_KEYS = ("when", "choices", "variable", "key", "values", "numerics")
FRAGMENT_KEYS = ("preload", "env", "settings", "prefix", "expect", "numerics", "needs", "ranks")
CONSTRAINT_KEYS = ("never", "because")
NUMERICS = ("same", "may-differ")
# Any machine's facts do to check a value; so many leave room for "one less" and "half of them".
_SAMPLE_FACTS = dict.fromkeys(FACTS, 8)
# So many choices are looked at for one that holds, before a space is called empty.
MOST_CHOICES = 20_000


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find(name: str) -> Path:
    """The file of the space called ``name``, or ``name`` itself if it ends in ``.yaml``."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"
    if not path.is_file():
        known = f"no such space{suggestion(name, names())}; give a YAML file, or one of: {', '.join(names())}"
        raise InputError(f"--space {name}: {known}")
    return path


def read(path: Path) -> Space:
    """The space in ``path``. Raises InputError naming file, line, key and mend."""
    file = yamlfile.read(path, "a space")
    data = file.data
    _only(file, (), data, KEYS)
    for key in ("name", "title"):
        if not isinstance(data.get(key), str):
            raise file.error((key,), f"'{key}' is missing or not a text; add a line '{key}: …'")
    if not isinstance(data.get("knobs"), dict) or not data["knobs"]:
        raise file.error(("knobs",), "'knobs' is empty or no mapping: nothing would be searched; add a knob")
    knobs: list[Knob] = []
    for name in data["knobs"]:
        knobs.append(_knob(file, name, knobs))
    space = Space(data["name"], data["title"], path, tuple(knobs), first=_first(file))
    space = replace(space, constraints=_constraints(file, space))
    if all(profile(space, choice, "x") is None for choice in itertools.islice(choices(space), MOST_CHOICES)):
        raise file.error(
            ("constraints",),
            "the space is empty: each choice breaks a constraint or sets a variable twice; remove what does",
        )
    return space


def _only(file: YamlFile, at: Path_, found: Any, allowed: tuple[str, ...]) -> None:
    where = ".".join(map(str, at)) or "the file"
    if not isinstance(found, dict):
        raise file.error(at, f"'{where}' must be a mapping with {', '.join(allowed)}")
    for key in found:
        if key not in allowed:
            near = suggestion(key, allowed)
            raise file.error((*at, key), f"unknown key '{key}' in {where}{near}; allowed are {', '.join(allowed)}")


def _first(file: YamlFile) -> tuple[str, ...]:
    found = file.data.get("first", [])
    if not isinstance(found, list):
        raise file.error(("first",), "'first' must be a list of shipped profiles, such as [jemalloc-retain]")
    known = shipped_names()
    for index, name in enumerate(found):
        if name not in known:
            raise file.error(("first", index), f"no shipped profile '{name}'{suggestion(str(name), known)}; remove it")
    return tuple(found)


def _knob(file: YamlFile, name: str, earlier: list[Knob]) -> Knob:
    at: Path_ = ("knobs", name)
    entry = file.data["knobs"][name]
    _only(file, at, entry, KNOB_KEYS)
    if ("choices" in entry) == ("variable" in entry):
        raise file.error(at, f"knob '{name}' needs either 'choices' or 'variable' with 'values'; give one of them")
    labels = _values(file, at, entry) if "variable" in entry else _choices(file, at, entry)
    return Knob(name, labels, _when(file, (*at, "when"), entry, earlier, name))


def _choices(file: YamlFile, at: Path_, entry: dict[str, Any]) -> dict[str, Fragment]:
    for key in ("values", "key", "numerics"):
        if key in entry:
            raise file.error((*at, key), f"'{key}' goes with 'variable', not with 'choices'; remove it")
    if not isinstance(entry["choices"], dict) or not entry["choices"]:
        raise file.error((*at, "choices"), f"knob '{at[-1]}' has no values; give 'choices' a label: what it sets")
    return {label: _fragment(file, (*at, "choices", label)) for label in entry["choices"]}


def _values(file: YamlFile, at: Path_, entry: dict[str, Any]) -> dict[str, Fragment]:
    values, variable, key = entry.get("values"), entry["variable"], entry.get("key")
    if not isinstance(values, list) or not values:
        raise file.error(
            (*at, "values") if "values" in entry else at,
            f"knob '{at[-1]}' has no values; add for example 'values: [{UNSET}, …]'",
        )
    kind = _kind(file, (*at, "variable"), variable)
    if key is not None:
        kind = _inner_kind(file, (*at, "key"), variable, str(key), kind)
    numerics = _numerics(file, (*at, "numerics"), entry)
    labels: dict[str, Fragment] = {}
    for index, value in enumerate(values):
        where = (*at, "values", index)
        if not _is_scalar(value):
            raise file.error(where, f"a value of '{at[-1]}' must be a text or a number; quote it")
        text = file.texts[where]
        if text in labels:
            raise file.error(where, f"'{text}' stands twice among the values of '{at[-1]}'; remove one")
        if text == UNSET:
            labels[text] = Fragment()
            continue
        _check_value(file, where, variable if key is None else f"{variable}'s {key}", kind, text)
        if key is None:
            labels[text] = Fragment(env={variable: text}, numerics=numerics)
        else:
            labels[text] = Fragment(settings={variable: {str(key): text}}, numerics=numerics)
    return labels


def _when(
    file: YamlFile, at: Path_, entry: dict[str, Any], earlier: list[Knob], name: str
) -> dict[str, tuple[str, ...]]:
    others = {other: knob for other, knob in file.data["knobs"].items() if other != name}
    return _labels(file, at, entry.get("when", {}), earlier, f"knob '{name}' counts when", others)


def _labels(
    file: YamlFile, at: Path_, found: Any, knobs: list[Knob], what: str, later: Mapping[str, Any] = {}
) -> dict[str, tuple[str, ...]]:
    """Knobs and labels of each, all of which must be there."""
    if not isinstance(found, dict):
        raise file.error(at, f"'{at[-1]}' must be a mapping of knobs to lists of their values")
    known = {knob.name: knob for knob in knobs}
    named: dict[str, tuple[str, ...]] = {}
    for name, values in found.items():
        if name not in known:
            if name in later:
                raise file.error((*at, name), f"{what} '{name}', which stands further down; move '{name}' before it")
            raise file.error((*at, name), f"{what} '{name}', which is no knob{suggestion(name, known)}")
        if not isinstance(values, list) or not values:
            example = next(iter(known[name].labels))
            raise file.error((*at, name), f"'{name}' needs a list of its values, for example [{example}]")
        texts = tuple(file.texts.get((*at, name, index), "") for index in range(len(values)))
        for index, text in enumerate(texts):
            if text not in known[name].labels:
                has = ", ".join(known[name].labels)
                near = suggestion(text, known[name].labels)
                raise file.error(
                    (*at, name, index), f"{what} {name} is '{text}', which it never is{near}; it is: {has}"
                )
        named[name] = texts
    return named


def _constraints(file: YamlFile, space: Space) -> tuple[Constraint, ...]:
    entries = file.data.get("constraints", [])
    if not isinstance(entries, list):
        raise file.error(("constraints",), "'constraints' must be a list of 'never' and 'because'")
    found = []
    for index, entry in enumerate(entries):
        at: Path_ = ("constraints", index)
        _only(file, at, entry, CONSTRAINT_KEYS)
        if not isinstance(entry.get("because"), str):
            raise file.error(at, "a constraint needs 'because: …', which says why what it excludes is not tried")
        never = _labels(file, (*at, "never"), entry.get("never", {}), list(space.knobs), "a constraint names")
        if not never:
            raise file.error(at, "a constraint needs 'never: {knob: [values], …}'")
        constraint = Constraint(never, entry["because"])
        broken = {constraint.broken(choice) for choice in choices(_about(space, never))}
        if broken == {True}:
            raise file.error(at, "this constraint excludes every choice: nothing would be left to try; narrow it")
        if True not in broken:
            raise file.error(at, "this constraint never applies: its values never come together; remove it")
        found.append(constraint)
    return tuple(found)


def _about(space: Space, named: Mapping[str, Any]) -> Space:
    """The knobs named, and those on which they depend, alone: few choices, however large the space is."""
    wanted = set(named)
    for knob in reversed(space.knobs):
        if knob.name in wanted:
            wanted |= set(knob.when)
    return replace(space, knobs=tuple(knob for knob in space.knobs if knob.name in wanted), constraints=())


def _fragment(file: YamlFile, at: Path_) -> Fragment:
    entry: Any = file.data
    for part in at:
        entry = entry[part]
    if entry is None or (entry == UNSET and isinstance(entry, str)):
        return Fragment()
    _only(file, at, entry, FRAGMENT_KEYS)
    preload = _texts(file, (*at, "preload"), entry)
    for index, library in enumerate(preload):
        if library not in FILE_NAMES:
            known = f"{suggestion(library, FILE_NAMES)}; known are {', '.join(FILE_NAMES)}"
            raise file.error((*at, "preload", index), f"unknown library '{library}'{known}")
    env = {}
    for name in _mapping(file, (*at, "env"), entry):
        where = (*at, "env", name)
        env[name] = _text(file, where, entry["env"][name])
        _check_value(file, where, name, _kind(file, where, name), env[name])
    settings: dict[str, dict[str, str]] = {}
    for name in _mapping(file, (*at, "settings"), entry):
        where = (*at, "settings", name)
        kind = _kind(file, where, name)
        settings[name] = {}
        for key, value in _mapping(file, where, entry["settings"]).items():
            text = settings[name][key] = _text(file, (*where, key), value)
            inner = _inner_kind(file, (*where, key), name, key, kind)
            _check_value(file, (*where, key), f"{name}'s {key}", inner, text)
        if name in env:
            raise file.error(where, f"'{name}' stands under 'env' too; write its keys here alone")
    return Fragment(
        preload, env, settings, _texts(file, (*at, "prefix"), entry), _expect(file, (*at, "expect"), entry),
        _numerics(file, (*at, "numerics"), entry), _needs(file, (*at, "needs"), entry), _ranks(file, at, entry),
    )  # fmt: skip


def _mapping(file: YamlFile, at: Path_, entry: dict[str, Any]) -> dict[str, Any]:
    found = entry.get(str(at[-1]), {})
    if not isinstance(found, dict):
        raise file.error(at, f"'{at[-1]}' must be a mapping")
    return found


def _texts(file: YamlFile, at: Path_, entry: dict[str, Any]) -> tuple[str, ...]:
    found = entry.get(str(at[-1]), [])
    if not isinstance(found, list):
        raise file.error(at, f"'{at[-1]}' must be a list, for example [a, b]")
    return tuple(_text(file, (*at, index), item) for index, item in enumerate(found))


def _text(file: YamlFile, at: Path_, value: Any) -> str:
    if not _is_scalar(value):
        raise file.error(at, f"'{at[-1]}' must be a text or a number; quote it")
    text = file.texts[at]
    try:
        expand(text, _SAMPLE_FACTS)
    except ExpressionError as error:
        raise file.error(at, str(error)) from None
    return text


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, (dict, list))


def _kind(file: YamlFile, at: Path_, name: Any) -> Kind:
    variable = catalogue.load().get(str(name))
    if variable is None or name == "LD_PRELOAD":
        near = catalogue.nearest(str(name))
        hint = f" (did you mean '{near}'?)" if near else ""
        wrong = "is made from 'preload'" if name == "LD_PRELOAD" else f"is not in the catalogue of variables{hint}"
        raise file.error(at, f"'{name}' {wrong}; see: runner explain")
    return variable.kind


def _inner_kind(file: YamlFile, at: Path_, variable: str, key: str, kind: Kind) -> Kind:
    if not kind.keys:
        raise file.error(at, f"{variable} takes one value and no keys such as '{key}'; leave 'key' out")
    if key not in kind.keys:
        raise file.error(
            at, f"{variable} has no key '{key}'{suggestion(key, kind.keys)}; see: runner explain {variable}"
        )
    return kind.keys[key]


def _check_value(file: YamlFile, at: Path_, what: str, kind: Kind, text: str) -> None:
    try:
        refused = refusal(kind, expand(text, _SAMPLE_FACTS))
    except ExpressionError as error:
        raise file.error(at, str(error)) from None
    except SettingsError as error:
        raise file.error(at, f"{what}: {error}; {error.mend}") from None
    if refused is not None:
        raise file.error(at, f"{what} can't be '{text}', which {refused}; write {kind.allowed()}")


def _expect(file: YamlFile, at: Path_, entry: dict[str, Any]) -> dict[str, str | int | bool]:
    expect = _mapping(file, at, entry)
    for key, value in expect.items():
        if not any(key == known or (known.endswith(".") and key.startswith(known)) for known in EXPECTABLE):
            raise file.error((*at, key), f"nothing called '{key}' is observed{suggestion(key, EXPECTABLE)}")
        if not isinstance(value, (str, int)):
            raise file.error((*at, key), f"'{key}' must be a text, a whole number or true/false")
        if isinstance(value, str):
            _text(file, (*at, key), value)
    return expect


def _numerics(file: YamlFile, at: Path_, entry: dict[str, Any]) -> Any:
    found = entry.get("numerics", "same")
    if found not in NUMERICS:
        raise file.error(at, f"numerics is 'same' or 'may-differ', not '{found}'")
    return found


def _ranks(file: YamlFile, at: Path_, entry: dict[str, Any]) -> int:
    """0 where it says nothing of them."""
    found = entry.get("ranks", 0)
    if type(found) is not int or (found < 1 and "ranks" in entry):
        raise file.error((*at, "ranks"), "'ranks' must be a whole number above 0: how many processes train together")
    return found


def _needs(file: YamlFile, at: Path_, entry: dict[str, Any]) -> dict[str, int]:
    needs = _mapping(file, at, entry)
    for fact, least in needs.items():
        if fact not in FACTS:
            raise file.error(
                (*at, fact), f"'{fact}' is no host fact{suggestion(fact, FACTS)}; known: {', '.join(FACTS)}"
            )
        if type(least) is not int:
            raise file.error((*at, fact), f"'{fact}' must be a whole number: how many there must be at least")
    return needs
