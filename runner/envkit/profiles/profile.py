"""Profiles: what each key of a YAML file in ``envprofiles/`` means, and reading one with what it extends."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from envkit.common import schema, user_folders, yamlfile
from envkit.common.errors import InputError
from envkit.common.suggestion import nearest
from envkit.common.yamlfile import YamlFile
from envkit.profiles.expressions import FACTS, ExpressionError, expand
from envkit.profiles.messages import (
    DividesByZero,
    ExtendsCircle,
    ExtendsUnknown,
    NameIsNotFile,
    NoProfile,
    NoProfileFile,
    NotTuned,
)

# In a checkout the package has a link to its envprofiles/, and in a wheel a copy of the files.
SHIPPED = Path(__file__).resolve().parents[1] / "envprofiles"
PROFILE_FOLDER = SHIPPED.resolve()
LOCAL = "local"  # the folder in it for profiles of one machine
TUNED = "tuned"
SCHEMA = Path(__file__).resolve().parent / "schemas/profile.schema.json"
WITH_EXPRESSIONS = ("needs", "env", "prefix", "expect")
Numerics = Literal["same", "may-differ"]
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Any facts do to check an expression; 1 can't be divided to zero by min and max.
_SAMPLE_FACTS = dict.fromkeys(FACTS, 1)


@dataclass(frozen=True)
class Profile:
    """One profile with everything it extends merged in; values still hold ``${...}``."""

    name: str
    title: str
    reason: str
    source: str | None
    extends: str | None
    preload: tuple[str, ...]
    env: dict[str, str]
    prefix: tuple[str, ...]
    expect: dict[str, str | int | bool]
    numerics: Numerics
    path: Path
    helps: str | None = None
    hurts: str | None = None
    needs: dict[str, Any] = field(default_factory=dict)  # of host facts, for it to apply to a machine: see needs.py
    ranks: int = 1  # so many processes train together, each on its part of the CPUs, for which facts stand then
    cpu: str | None = None  # the model of the processor that it holds for, where it was tuned on such ones

    @property
    def on_gpus(self) -> bool:
        """Whether it is for training on GPUs, which must be looked for then."""
        return "gpus" in self.needs


def local_folder(folder: Path = PROFILE_FOLDER) -> Path:
    """Return the folder of the profiles that were tuned on this machine, which belongs to ``folder``.

    A kit that pip installed keeps them in the user's configuration folder (XDG Base Directory Specification), because
    an upgrade replaces the folder of the shipped ones.
    """
    if folder == PROFILE_FOLDER and not SHIPPED.is_symlink():
        with contextlib.suppress(RuntimeError):  # no home
            return user_folders.configuration() / "profiles"
    return folder / LOCAL


def names(folder: Path = PROFILE_FOLDER) -> list[str]:
    """The names of the profiles that ``folder`` has for every machine, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def local_names(folder: Path = PROFILE_FOLDER) -> list[str]:
    """The names of the profiles that were made on this machine, or on one with the same folder, sorted."""
    return names(local_folder(folder))


def tuned_name() -> str:
    """What the profile is called that was tuned for this machine, for which the name ``tuned`` stands."""
    return f"{os.uname().nodename}-{TUNED}"


def type_name() -> str | None:
    """The same for the type of nodes that this one is of; None outside of a Slurm job, which names their partition."""
    partition = os.environ.get("SLURM_JOB_PARTITION")
    return f"{partition}-{TUNED}" if partition else None


def load(name: str, folder: Path = PROFILE_FOLDER) -> Profile:
    """The profile called ``name``, or the one in the file ``name`` if it ends in ``.yaml``.

    What it extends is looked up beside it, then in ``folder``. Raises InputError naming file, line and fix.
    """
    path = _first(_places(name, folder))
    if path.is_file():
        return _load(path, folder, chain=())
    if name.endswith((".yaml", ".yml")):
        raise InputError(NoProfileFile(str(path)))
    if name == TUNED:
        raise InputError(NotTuned(str(path)))
    near = difflib.get_close_matches(name, [*names(folder), *local_names(folder)], cutoff=0.7)
    raise InputError(NoProfile(name, str(folder), tuple(map(repr, near))))


def looked_for(name: str, folder: Path = PROFILE_FOLDER) -> list[Path]:
    """Every file that decides what `load` returns, also those that would come first if they were there."""
    places = _places(name, folder)
    found = [*places]
    path = _first(places)
    while (parent := _read(path).data.get("extends")) is not None:
        places = _parents(path, parent, folder)
        found += places
        path = _first(places)
    return found


def _places(name: str, folder: Path) -> list[Path]:
    """Where a profile is looked for, in this order."""
    if name.endswith((".yaml", ".yml")):
        return [Path(name)]
    local = [tuned_name(), type_name()] if name == TUNED else [name]
    return [folder / f"{name}.yaml", *(local_folder(folder) / f"{one}.yaml" for one in local if one)]


def _parents(path: Path, extends: str, folder: Path) -> list[Path]:
    """Where the profile that the one in ``path`` extends is looked for, in this order."""
    return [path.parent / f"{extends}.yaml", folder / f"{extends}.yaml"]


def _first(places: list[Path]) -> Path:
    """The first that is there, or else the last."""
    return next((place for place in places if place.is_file()), places[-1])


def _read(path: Path) -> yamlfile.YamlFile:
    return yamlfile.read(path, own=path.parent == PROFILE_FOLDER)


def _load(path: Path, folder: Path, chain: tuple[Path, ...]) -> Profile:
    file = _read(path)
    schema.validate(file, SCHEMA)
    _check(file)
    data = file.data
    parent: Profile | None = None
    if data.get("extends") is not None:
        parent_path = _first(_parents(path, data["extends"], folder))
        if parent_path.resolve() in (*(link.resolve() for link in chain), path.resolve()):
            circle = " -> ".join([*(link.stem for link in chain), path.stem, parent_path.stem])
            raise file.error(("extends",), ExtendsCircle(circle))
        if not parent_path.is_file():
            raise file.error(("extends",), ExtendsUnknown(data["extends"], nearest(data["extends"], names(folder))))
        parent = _load(parent_path, folder, (*chain, path))
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


def _merged(inherited: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Key by key; an own value of null takes an inherited key away."""
    return {key: value for key, value in {**inherited, **own}.items() if value is not None}


def _env_texts(file: YamlFile) -> dict[str, str | None]:
    env = file.data.get("env", {})
    return {name: None if value is None else file.texts[("env", name)] for name, value in env.items()}


def _check(file: YamlFile) -> None:
    """Raise InputError for what the schema can't say: the file's name, and which expressions there are."""
    if file.data["name"] != file.path.stem:
        raise file.error(("name",), NameIsNotFile(file.data["name"], file.path.stem))
    for at, text in file.texts.items():
        if at[0] in WITH_EXPRESSIONS:
            try:
                expand(text, _SAMPLE_FACTS)
            except ExpressionError as error:
                if not isinstance(error.message, DividesByZero):
                    raise file.error(at, error.message) from None
