"""Profiles: what each key of a YAML file in ``envprofiles/`` means, and reading one with what it extends."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from runner import yamlfile
from runner.errors import InputError
from runner.expressions import FACTS, ExpressionError, expand
from runner.suggestion import suggestion
from runner.worker.libraries import FILE_NAMES
from runner.yamlfile import YamlFile

PROFILE_FOLDER = Path(__file__).resolve().parent.parent / "envprofiles"
LOCAL = "local"  # the folder in it for profiles of one machine
TUNED = "tuned"
KEYS = ("name", "title", "why", "extends", "needs", "ranks", "preload", "env", "prefix", "expect", "numerics")
WHY_KEYS = ("reason", "source")
# Where it is known to help and to hurt; a profile may leave them out.
WHY_MORE = ("helps", "hurts")
Numerics = Literal["same", "may-differ"]
# Where `expect` can look in the worker's evidence. Those that end in a dot take a setting's name after it.
EXPECTABLE = (
    "openmp.runtime", "openmp.max_threads", "openmp.proc_bind", "openmp.places", "openmp.blocktime_ms",
    "openmp.wait_policy", "openmp.settings.", "malloc.allocator", "malloc.settings.", "memory.huge_pages",
    "memory.numa_policy", "threads.pinned_cpus", "onednn.isa", "onednn.implementation", "onednn.fpmath",
    "mkl.max_threads", "mkl.dispatch", "torch.num_threads", "torch.interop_threads", "torch.deterministic",
    "torch.matmul_precision", "torch.huge_page_tensors", "gpu.count", "gpu.module_loading", "gpu.settings.",
    "gpu.expandable_segments", "gpu.tf32_products", "gpu.tf32_convolutions", "gpu.cublas_workspace_bytes",
    "gpu.work_queues", "gpu.one_queue", "nccl.log", "nccl.network", "nccl.interfaces", "nccl.transports",
    "nccl.channels", "nccl.algorithms", "nccl.protocols", "nccl.settings.",
)  # fmt: skip
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Any facts do to check an expression; 1 can't be divided to zero by min and max.
_SAMPLE_FACTS = dict.fromkeys(FACTS, 1)


@dataclass(frozen=True)
class Profile:
    """One profile with everything it extends merged in; values still hold ``${...}``.

    ``needs`` has the least value of host facts: with less of one the profile does not apply to a machine. ``ranks``
    processes train together, each with its part of the CPUs, for which facts in the values stand then.
    """

    name: str
    title: str
    reason: str
    source: str
    extends: str | None
    preload: tuple[str, ...]
    env: dict[str, str]
    prefix: tuple[str, ...]
    expect: dict[str, str | int | bool]
    numerics: Numerics
    path: Path
    helps: str | None = None
    hurts: str | None = None
    needs: dict[str, str | int] = field(default_factory=dict)
    ranks: int = 1

    @property
    def on_gpus(self) -> bool:
        """Whether it is for training on GPUs, which must be looked for then."""
        return "gpus" in self.needs


def names(folder: Path = PROFILE_FOLDER) -> list[str]:
    """The names of the profiles that ``folder`` has for every machine, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def local_names(folder: Path = PROFILE_FOLDER) -> list[str]:
    """The names of the profiles that were made on this machine, or on one with the same folder, sorted."""
    return names(folder / LOCAL)


def tuned_name() -> str:
    """What the profile is called that was tuned for this machine, for which the name ``tuned`` stands."""
    return f"{os.uname().nodename}-{TUNED}"


def load(name: str, folder: Path = PROFILE_FOLDER) -> Profile:
    """The profile called ``name``, or the one in the file ``name`` if it ends in ``.yaml``.

    What it extends is looked up beside it, then in ``folder``. Raises InputError naming file, line and mend.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"{path}: no such profile file")
    else:
        path = _first(_places(name, folder))
        if not path.is_file():
            if name == TUNED:
                raise InputError(f"{path}: this machine has no tuned profile yet; make one with: runner tune")
            known = [*names(folder), *local_names(folder)]
            raise InputError(f"no profile '{name}' in {folder}{suggestion(name, known)}; there are: {', '.join(known)}")
    return _load(path, folder, chain=())


def looked_for(name: str, folder: Path = PROFILE_FOLDER) -> list[Path]:
    """Every file that decides what `load` returns, also those that would come first if they were there."""
    places = _places(name, folder)
    found = [*places]
    path = _first(places)
    while (parent := yamlfile.read(path).data.get("extends")) is not None:
        places = _parents(path, parent, folder)
        found += places
        path = _first(places)
    return found


def _places(name: str, folder: Path) -> list[Path]:
    """Where a profile is looked for, in this order."""
    if name.endswith((".yaml", ".yml")):
        return [Path(name)]
    return [folder / f"{name}.yaml", folder / LOCAL / f"{tuned_name() if name == TUNED else name}.yaml"]


def _parents(path: Path, extends: str, folder: Path) -> list[Path]:
    """Where the profile that the one in ``path`` extends is looked for, in this order."""
    return [path.parent / f"{extends}.yaml", folder / f"{extends}.yaml"]


def _first(places: list[Path]) -> Path:
    """The first that is there, or else the last."""
    return next((place for place in places if place.is_file()), places[-1])


def _load(path: Path, folder: Path, chain: tuple[Path, ...]) -> Profile:
    file = yamlfile.read(path)
    _validate(file)
    data = file.data
    parent: Profile | None = None
    if data.get("extends") is not None:
        parent_path = _first(_parents(path, data["extends"], folder))
        if parent_path.resolve() in (*(link.resolve() for link in chain), path.resolve()):
            circle = " -> ".join([*(link.stem for link in chain), path.stem, parent_path.stem])
            raise file.error(("extends",), f"'extends' goes in a circle ({circle}); remove one link")
        if not parent_path.is_file():
            near = suggestion(data["extends"], names(folder))
            raise file.error(("extends",), f"extends '{data['extends']}', which is not a profile{near}")
        parent = _load(parent_path, folder, (*chain, path))
    return Profile(
        name=data["name"],
        title=data["title"],
        reason=data["why"]["reason"],
        source=data["why"]["source"],
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
    )


def _merged(inherited: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Key by key; an own value of null takes an inherited key away."""
    return {key: value for key, value in {**inherited, **own}.items() if value is not None}


def _env_texts(file: YamlFile) -> dict[str, str | None]:
    env = file.data.get("env", {})
    return {name: None if value is None else file.texts[("env", name)] for name, value in env.items()}


def _validate(file: YamlFile) -> None:
    data = file.data
    for key in data:
        if key not in KEYS:
            raise file.error((key,), f"unknown key '{key}'{suggestion(key, KEYS)}; allowed are {', '.join(KEYS)}")
    for key in ("name", "title", "why"):
        if key not in data:
            raise file.error((), f"key '{key}' is missing; add a line '{key}: …'")
    for key in ("name", "title", "extends"):
        if key in data and not isinstance(data[key], str):
            _wrong_type(file, (key,), "a text")
    if data["name"] != file.path.stem:
        raise file.error(("name",), f"name '{data['name']}' must be the file's name, '{file.path.stem}'")
    _validate_why(file)
    _validate_needs(file)
    if type(data.get("ranks", 1)) is not int or data.get("ranks", 1) < 1:
        _wrong_type(file, ("ranks",), "a whole number above 0: how many processes train together")
    _validate_list(file, "preload")
    _validate_list(file, "prefix")
    for index, library in enumerate(data.get("preload", [])):
        if library not in FILE_NAMES:
            known = f"{suggestion(str(library), FILE_NAMES)}; known are {', '.join(FILE_NAMES)}"
            raise file.error(("preload", index), f"unknown library '{library}'{known}")
    _validate_env(file)
    _validate_expect(file)
    if data.get("numerics", "same") not in ("same", "may-differ"):
        raise file.error(("numerics",), f"numerics is 'same' or 'may-differ', not '{data['numerics']}'")


def _wrong_type(file: YamlFile, at: tuple[str | int, ...], wanted: str) -> NoReturn:
    value: Any = file.data
    for key in at:
        value = value[key]
    found = {dict: "a mapping", list: "a list", type(None): "nothing", str: "a text"}.get(type(value))
    key = ".".join(str(part) for part in at)
    raise file.error(at, f"'{key}' must be {wanted}, not {found or f'{type(value).__name__} {value}'}")


def _validate_why(file: YamlFile) -> None:
    why = file.data["why"]
    if not isinstance(why, dict):
        _wrong_type(file, ("why",), "a mapping of 'reason' (a sentence) and 'source' (where that is known from)")
    for key in why:
        if key not in (*WHY_KEYS, *WHY_MORE):
            raise file.error(("why", key), f"unknown key 'why.{key}'{suggestion(key, (*WHY_KEYS, *WHY_MORE))}")
    for key in WHY_KEYS:
        if not isinstance(why.get(key), str):
            raise file.error(("why",), f"'why.{key}' is missing or not a text; add it")
    for key in WHY_MORE:
        if not isinstance(why.get(key, ""), str):
            _wrong_type(file, ("why", key), "a text")


def _validate_needs(file: YamlFile) -> None:
    needs = file.data.get("needs", {})
    if not isinstance(needs, dict):
        _wrong_type(file, ("needs",), "a mapping of host facts to the least that will do, for example {numa_nodes: 2}")
    for fact, least in needs.items():
        at = ("needs", fact)
        if fact not in FACTS:
            known = f"{suggestion(str(fact), FACTS)}; known are {', '.join(sorted(FACTS))}"
            raise file.error(at, f"unknown host fact '{fact}'{known}")
        if least is None or (isinstance(least, int) and not isinstance(least, bool)):
            continue
        if not isinstance(least, str) or not re.fullmatch(r"\d+|\$\{[^}]*\}", least):
            _wrong_type(file, at, "a whole number, or one expression such as ${physical_cores + 1}")
        _check_expression(file, at, least)


def _validate_list(file: YamlFile, key: str) -> None:
    if key not in file.data:
        return
    if not isinstance(file.data[key], list):
        _wrong_type(file, (key,), "a list, for example [a, b]")
    for index, item in enumerate(file.data[key]):
        if not isinstance(item, str) and not (isinstance(item, int) and not isinstance(item, bool)):
            _wrong_type(file, (key, index), "a text")
        _check_expression(file, (key, index), str(item))


def _validate_env(file: YamlFile) -> None:
    env = file.data.get("env", {})
    if not isinstance(env, dict):
        _wrong_type(file, ("env",), "a mapping of variables to values")
    for name, value in env.items():
        at = ("env", name)
        if not VARIABLE_NAME.match(name):
            raise file.error(at, f"'{name}' is not a variable's name (letters, digits and _)")
        if name == "LD_PRELOAD":
            raise file.error(at, "LD_PRELOAD is made from 'preload'; name the library there")
        if isinstance(value, bool):
            raise file.error(at, f"'env.{name}' is a YAML boolean; quote it to pass the text on: \"{file.texts[at]}\"")
        if isinstance(value, (dict, list)):
            _wrong_type(file, at, "a text or a number")
        if value is not None:
            _check_expression(file, at, file.texts[at])


def _validate_expect(file: YamlFile) -> None:
    expect = file.data.get("expect", {})
    if not isinstance(expect, dict):
        _wrong_type(file, ("expect",), "a mapping of evidence to values")
    for key, value in expect.items():
        at = ("expect", key)
        if not any(key == known or (known.endswith(".") and key.startswith(known)) for known in EXPECTABLE):
            shown = ", ".join(f"{known}NAME" if known.endswith(".") else known for known in EXPECTABLE)
            raise file.error(at, f"nothing called '{key}' is observed{suggestion(key, EXPECTABLE)}; there are: {shown}")
        if value is not None and not isinstance(value, (str, int)):
            _wrong_type(file, at, "a text, a whole number or true/false")
        if isinstance(value, str):
            _check_expression(file, at, value)


def _check_expression(file: YamlFile, at: tuple[str | int, ...], text: str) -> None:
    try:
        expand(text, _SAMPLE_FACTS)
    except ExpressionError as error:
        if "divides by zero" not in str(error):
            raise file.error(at, str(error)) from None
