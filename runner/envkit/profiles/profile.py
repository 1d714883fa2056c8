"""Profiles: what each key of a YAML file in ``envprofiles/`` means, and reading one with what it extends."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar, cast

from envkit.common import ownership, schema, yamlfile
from envkit.common.errors import InputError
from envkit.common.suggestion import nearest
from envkit.common.yamlfile import Path_, YamlFile
from envkit.messages import Message
from envkit.profiles import code_variables, launchers
from envkit.profiles.expressions import FACTS, REFERENCE, ExpressionError, expand
from envkit.profiles.limit_messages import SecondOfAKind, TooManyVariables
from envkit.profiles.messages import (
    DividesByZero,
    ExtendsCircle,
    ExtendsUnknown,
    NameIsNotFile,
    NoProfileFile,
    NotTuned,
    PassedOver,
    ProjectProfile,
    UnknownProfile,
)
from envkit.profiles.needs import Need
from envkit.profiles.places import PROFILE_FOLDER, Kind, Place, local_folder, places, untrusted
from envkit.worker.libraries import LIBRARIES, ONE_RUNS, preloadable

TUNED, BASELINE = "tuned", "baseline"
SCHEMA = Path(__file__).resolve().parent / "schemas/profile.schema.json"
WITH_EXPRESSIONS = ("needs", "env", "prefix", "expect")
MOST_VARIABLES = 500  # each that is unknown is compared with all that the kit knows
Numerics = Literal["same", "may-differ"]
Entry = TypeVar("Entry")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Any facts do to check an expression; 1 can't be divided to zero by min and max.
_SAMPLE_FACTS = dict.fromkeys(FACTS, 1)
_ANNOUNCED: set[Path] = set()


def _to_nobody(message: Message) -> None:
    pass


# Called if a name stands for a file of the project: the command line prints the message.
announce: Callable[[Message], None] = _to_nobody


@dataclass(frozen=True, kw_only=True)
class ProfileSettings:
    """Settings for a worker, the machines that they are for, and what the worker must then observe."""

    preload: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    expect: dict[str, str | int | bool] = field(default_factory=dict)
    numerics: Numerics = "same"
    needs: dict[str, Need] = field(default_factory=dict)  # of host facts, for it to apply to a machine: see needs.py


@dataclass(frozen=True, kw_only=True)
class Profile(ProfileSettings):
    """One profile with everything it extends merged in; values still hold ``${...}``."""

    name: str
    title: str
    reason: str
    source: str | None
    extends: str | None
    path: Path
    helps: str | None = None
    hurts: str | None = None
    ranks: int = 1  # so many processes train together, each on its part of the CPUs, for which facts stand then
    cpu: str | None = None  # the model of the processor that it holds for, where it was tuned on such ones

    @property
    def on_gpus(self) -> bool:
        """Return whether it is for training on GPUs, which must be looked for then."""
        return "gpus" in self.needs


def names(folder: Path = PROFILE_FOLDER) -> list[str]:
    """Return the names of the profiles that ``folder`` has for every machine, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def tuned_name() -> str:
    """Return what the profile is called that was tuned for this machine, for which the name ``tuned`` stands."""
    return f"{os.uname().nodename}-{TUNED}"


def type_name() -> str | None:
    """Return the same for the type of this node; None outside of a Slurm job, which names the partition."""
    partition = os.environ.get("SLURM_JOB_PARTITION")
    return f"{partition}-{TUNED}" if partition else None


def load(name: str, folder: Path | None = None) -> Profile:
    """Return the profile called ``name``, or the one in the file ``name`` if it ends in ``.yaml``.

    Names are looked up in ``places()``, or in ``folder`` alone; what it extends is looked up beside it, then in the
    places that follow its own. Raises InputError naming file, line and fix.
    """
    where = places(folder)
    files = _files(name, where)
    if folder is None and not _is_file_name(name) and name not in (TUNED, BASELINE):
        _announce_untrusted(name)
    if files:
        profile = _load(files[0], where, chain=())
        if _is_of_project(files[0], where) and not _is_file_name(name):
            hidden = str(files[1]) if len(files) > 1 else None
            _announce(files[0], ProjectProfile(name, str(files[0]), hidden, profile.prefix, profile.preload))
        return profile
    if _is_file_name(name):
        raise InputError(NoProfileFile(name))
    if name == TUNED:
        raise InputError(NotTuned(str(local_folder(folder or PROFILE_FOLDER) / f"{tuned_name()}.yaml")))
    names = dict.fromkeys(known_name for place in where for known_name in place.names())
    near = tuple(difflib.get_close_matches(name, names, cutoff=0.7))
    raise InputError(UnknownProfile(name, tuple(str(place.folder) for place in where if place.folder.is_dir()), near))


def listed() -> tuple[list[tuple[Profile, Place, list[Path]]], list[InputError]]:
    """Return every profile that a name stands for here, where it is, and the files that it hides; then bad files.

    They come by place, the shipped ones first, and by name.
    """
    where = places()
    profiles, bad = [], []
    for place in reversed(where):
        for name in place.names():
            first, *hidden = _files(name, where)
            if first.parent == place.folder:
                try:
                    profiles.append((_load(first, where, chain=()), place, hidden))
                except InputError as error:
                    bad.append(error)
    return profiles, bad


def exists(name: str) -> bool:
    """Return whether ``name`` stands for a profile in one of the places."""
    return bool(_files(name, places()))


def anywhere(name: str) -> str:
    """Return how to name a profile on another machine, where the user stands in another folder.

    A file gets its absolute path. So does the project's, whose name may stand for another profile there.
    """
    if _is_file_name(name):
        return str(Path(name).absolute())
    where = places()
    files = _files(name, where)
    return str(files[0]) if files and _is_of_project(files[0], where) else name


def place_of(profile: Profile) -> Kind | None:
    """Return whose a profile is; None for a file that was named by its path, in no place."""
    return next((place.kind for place in places() if place.folder == profile.path.parent), None)


def _is_file_name(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _is_of_project(path: Path, where: Sequence[Place]) -> bool:
    return where[0].kind == "project" and path.parent == where[0].folder


def _files(name: str, where: Sequence[Place]) -> list[Path]:
    """Return the files that ``name`` stands for; the first counts.

    ``tuned`` is this machine's, whatever a project has. The baseline is the kit's: all else is compared with it.
    """
    if _is_file_name(name):
        return [Path(name)] if Path(name).is_file() else []
    if name == TUNED:
        tuned = filter(None, (tuned_name(), type_name()))
        paths = [place.file_of(stem) for stem in tuned for place in where if place.kind == "user"]
    else:
        paths = [place.file_of(name) for place in where if name != BASELINE or place.kind == "shipped"]
    return [path for path in paths if path is not None]


def _parents(path: Path, extends: str, where: Sequence[Place]) -> list[Path]:
    """Return the files that ``path`` may extend: the one beside it, then those in places after its own."""
    at = next((number for number, place in enumerate(where) if place.folder == path.parent), None)
    after = [place for place in where if place.kind != "project"] if at is None else where[at + 1 :]
    if at is not None and where[at].kind == "project":
        _announce_untrusted(extends)
    beside = Place("user", path.parent) if at is None else where[at]
    return [file for place in (beside, *after) if (file := place.file_of(extends)) is not None]


def _announce(path: Path, message: Message) -> None:
    """Tell, once for each ``path``, about a file or folder of the project, which others may have written."""
    if path not in _ANNOUNCED:
        _ANNOUNCED.add(path)
        announce(message)


def _announce_untrusted(name: str) -> None:
    for path in untrusted(name):
        _announce(path, PassedOver(str(path)))


# A command reads the same profile several times, and others that extend it. Nobody changes what it has parsed.
@lru_cache(maxsize=256)
def _valid(path: Path, content: bytes) -> YamlFile:
    """Return the profile's file, which says what the schema and ``_check`` ask of it."""
    file = yamlfile.parse(path, content, is_shipped=path.parent == PROFILE_FOLDER)
    schema.validate(file, SCHEMA)
    _check(file)
    return file


def _load(path: Path, where: Sequence[Place], chain: tuple[Path, ...]) -> Profile:
    content = yamlfile.content(path)
    place = next((place for place in where if place.folder == path.parent), None)
    if place is None or place.kind == "user":  # of the others ``places`` has asked, or they are the kit's
        ownership.require_own(path)
    file = _valid(path, content)
    data = file.data
    parent: Profile | None = None
    if data.get("extends") is not None:
        # a name: a path would lead past what is asked of each place
        there = [] if "/" in data["extends"] else _parents(path, data["extends"], where)
        if not there:
            near = nearest(data["extends"], where[-1].names())
            raise file.error(("extends",), ExtendsUnknown(data["extends"], near))
        # one that is called as what it extends means that of a later place, if there is one
        parent_path = next((file for file in there if file != path), there[0])
        if parent_path.resolve() in (*(link.resolve() for link in chain), path.resolve()):
            circle = " -> ".join([*(link.stem for link in chain), path.stem, parent_path.stem])
            raise file.error(("extends",), ExtendsCircle(circle))
        parent = _load(parent_path, where, (*chain, path))
    return Profile(
        name=data["name"],
        title=data["title"],
        reason=data["why"]["reason"],
        source=data["why"].get("source"),
        extends=data.get("extends"),
        preload=tuple(data.get("preload", parent.preload if parent else ())),
        env=_merged(parent.env if parent else {}, _env_texts(file)),
        prefix=tuple(str(item) for item in data.get("prefix", parent.prefix if parent else ())),
        expect=_merged(parent.expect if parent else {}, data.get("expect", {})),
        numerics=cast(Numerics, data.get("numerics", parent.numerics if parent else "same")),
        path=path,
        helps=data["why"].get("helps"),
        hurts=data["why"].get("hurts"),
        needs=_merged(parent.needs if parent else {}, data.get("needs", {})),
        ranks=data.get("ranks", parent.ranks if parent else 1),
        cpu=data.get("cpu", parent.cpu if parent else None),
    )


def _merged(inherited: Mapping[str, Entry], entries: Mapping[str, Entry | None]) -> dict[str, Entry]:
    """Return the inherited entries with a profile's in their places; null takes an inherited entry away."""
    return {key: value for key, value in {**inherited, **entries}.items() if value is not None}


def _env_texts(file: YamlFile) -> dict[str, str | None]:
    env = file.data.get("env", {})
    return {name: None if value is None else file.texts[("env", name)] for name, value in env.items()}


def _check(file: YamlFile) -> None:
    """Raise InputError for what the schema can't say: the file's name, and which expressions there are."""
    if file.data["name"] != file.path.stem:
        raise file.error(("name",), NameIsNotFile(file.data["name"], file.path.stem))
    require_libraries(file, (), file.data.get("preload"))
    if (number := len(file.data.get("env") or ())) > MOST_VARIABLES:
        raise file.error(("env",), TooManyVariables(number, MOST_VARIABLES))
    texts: dict[Path_, str] = {}
    for at, text in file.texts.items():
        if at[0] in WITH_EXPRESSIONS:
            try:
                texts[at] = expand(text, _SAMPLE_FACTS)
            except ExpressionError as error:
                if not isinstance(error.message, DividesByZero):
                    raise file.error(at, error.message) from None
                texts[at] = REFERENCE.sub("1", text)
    require_no_code(file, (), file.data.get("env"), file.data.get("prefix"), texts)


def require_libraries(file: YamlFile, at: Path_, preload: Sequence[str] | None) -> None:
    """Raise InputError if the list ``preload`` below ``at`` names what is no library of the registry, or two of a kind.

    The second of two allocators would do nothing.
    """
    libraries = tuple(preloadable())
    first: dict[str, str] = {}
    for index, name in enumerate(preload or ()):
        where = (*at, "preload", index)
        if name not in libraries:
            raise file.error(where, schema.not_a_choice(file, where, name, libraries))
        kind = LIBRARIES[name].kind
        if kind in ONE_RUNS and first.setdefault(kind, name) != name:
            raise file.error(where, SecondOfAKind(name, first[kind]))


def require_no_code(
    file: YamlFile,
    at: Path_,
    env: Mapping[str, object] | None,
    prefix: Sequence[object] | None,
    texts: Mapping[Path_, str],
) -> None:
    """Raise InputError if ``env`` and ``prefix`` below ``at`` let the file choose what is run.

    ``texts`` are those of the file with values in the places of expressions.
    """
    for name, value in (env or {}).items():
        where = (*at, "env", name)
        if value is not None and (problem := code_variables.problem(name, texts[where])):
            raise file.error(where, problem)
    words = [(*at, "prefix", index) for index in range(len(prefix or ()))]
    if problem_of_prefix := launchers.problem([texts[where] for where in words]):
        index, message = problem_of_prefix
        raise file.error(words[index], message)
