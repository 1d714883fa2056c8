"""The environment variables that the kit understands, and what is wrong with a set of them.

The catalogue is data, in the folder ``variables`` beside this file: which values a variable takes, what it does,
where that is documented and how it is verified. The registry of libraries says who reads it. Problems are to show
before anything runs: most libraries ignore an unknown name or value without a word, and some hang at one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from envkit.common import codec, yamlfile
from envkit.common.errors import InputError
from envkit.messages import Message
from envkit.profiles.catalogue_messages import DEFAULT_UNKNOWN, DESCRIBED_THERE, NOTHING_ASKS, PART, way_to_get
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.messages import CantBeUsed, SetsInVain
from envkit.profiles.setting_messages import (
    BadValue,
    Correct,
    GetReader,
    InVain,
    NobodyReads,
    NoLongerRead,
    RemoveOrGet,
    RemoveOrUpdate,
    UnknownKey,
    UnknownName,
    UseProfileInstead,
    VersionDoesNotRead,
    Write,
)
from envkit.profiles.values import Kind, SettingsError, numbers, refusal
from envkit.worker import libraries
from envkit.worker.libraries import LIBRARIES, Library
from envkit.worker.performance_variables import is_performance_variable

FOLDER = Path(__file__).resolve().parent / "variables"
_READS = re.compile(r"any|(>=|<)(\d+(?:\.\d+)*)")
# How PyTorch's version ends where it is built without CUDA.
_BUILDS_WITHOUT_CUDA = re.compile(r"\+(cpu|rocm|xpu)")
# How near a name that can't change the outcome must be to a known one before it is taken for a slip of the pen.
_NEAR = 0.85
_NEAR_LENGTH = 2


@dataclass(frozen=True)
class Variable:
    """An entry of the catalogue."""

    name: str
    read_by: dict[str, str]  # by library the versions that read it: ``any``, ``>=2.1`` or ``<2.1``
    kind: Kind
    default: str
    does: str
    source: str
    verified_by: str | None = None  # where the evidence shows it; one that ends in a dot lacks a setting's key
    not_observable: str | None = None  # why nothing shows it, where nothing does


@dataclass(frozen=True)
class Problem:
    """A fault of a variable."""

    variable: str
    kind: Literal["unknown", "unread", "value"]  # unknown: not in the catalogue, whose fault that may be
    wrong: Message
    fix: Message

    @property
    def message(self) -> InVain:
        """The problem with its mend."""
        return InVain(self.variable, self.wrong, self.fix)


@cache
def load() -> dict[str, Variable]:
    """Return all variables by name. Tests of the kit compare its files with ``variables.schema.json``."""
    variables: dict[str, Variable] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        file = yamlfile.read(path, PART, is_shipped=True).data
        variables |= {
            name: _variable(name, {**file.get(entry.get("same_as"), {}), **entry}) for name, entry in file.items()
        }
    for name, library in libraries.variables().items():
        if name not in variables and library.source:
            variables[name] = _undescribed(name, library)
    return variables


def _undescribed(name: str, library: Library) -> Variable:
    """Return the variable of which only its library's entry in the registry tells: it takes any text."""
    probe = library.shows[0].partition(".")[0]
    verified_by = f"{probe}.settings.{name}" if library.settings else None
    return Variable(
        name, libraries.readers(name), Kind("text"), DEFAULT_UNKNOWN, DESCRIBED_THERE, library.source, verified_by,
        not_observable=None if verified_by else NOTHING_ASKS,
    )  # fmt: skip


def _variable(name: str, entry: Mapping[str, object]) -> Variable:
    """Return the variable of an entry, which describes the kind of its values by keys beside the others."""
    variable = codec.parse({**entry, "name": name, "read_by": libraries.readers(name), "kind": entry}, Variable)
    if not variable.kind.hex:
        return variable
    keys = {key: replace(setting, hex=True) for key, setting in variable.kind.keys.items()}
    return replace(variable, kind=replace(variable.kind, keys=keys))


def readers(inspection: Inspection) -> frozenset[str]:
    """Return the libraries of the registry that are in an image, by the inspection of it.

    PyTorch's version names its build, which tells what it has built in. All wheels bring libgomp and oneDNN, and those
    for x86-64 bring MKL. All but ``+cpu``, ``+rocm`` and ``+xpu`` ones bring CUDA and NCCL.
    """
    fingerprint, torch = inspection["fingerprint"], inspection["packages"].get("torch")
    built_in = {"system"}
    if (fingerprint.get("libc") or "").startswith("glibc"):
        built_in.add("glibc")
    if torch is not None:
        built_in.add("torch")
        if fingerprint.get("architecture") == "x86_64":
            built_in.add("torch-x86_64")
        if not _BUILDS_WITHOUT_CUDA.search(torch):
            built_in.add("torch-cuda")
    packages = {name for name, version in inspection["packages"].items() if version is not None}
    return frozenset(
        name
        for name, library in LIBRARIES.items()
        if name in inspection["libraries"]
        or library.comes_with in built_in
        or (not library.files and not library.comes_with and not packages.isdisjoint(library.packages.values()))
    )


def versions(inspection: Inspection) -> dict[str, str]:
    """Return the version of each library of which the inspection tells it."""
    libc = (inspection["fingerprint"].get("libc") or "").split()
    read_versions = {
        "glibc": libc[1] if len(libc) == 2 and libc[0] == "glibc" else None,
        "python": inspection["python"].get("version"),
        **{name: file.get("version") for name, file in inspection["libraries"].items()},
        **{
            name: inspection["packages"].get(library.packages["pypi"])
            for name, library in LIBRARIES.items()
            if "pypi" in library.packages and not library.comes_with
        },
    }
    return {name: version for name, version in read_versions.items() if version is not None}


def check(variables: Mapping[str, str], readers: Collection[str], versions: Mapping[str, str]) -> list[Problem]:
    """Return the variables that an image with these libraries would ignore, refuse or misread, in their order.

    Who will really read a variable is decided when the worker loads its libraries, and seen in its evidence; here a
    variable is wrong only where no library that is in the image could take it.
    """
    problems = (_check(name, value, readers, versions) for name, value in variables.items())
    return [problem for problem in problems if problem is not None]


def settings(variable: Variable, value: str) -> list[tuple[str, Kind, str]]:
    """Return the known keys in a variable's value with their kinds and values; of a plain value the key is empty."""
    kind = variable.kind
    if not kind.keys:
        return [("", kind, value)]
    pairs = (entry.strip().partition(kind.assign) for entry in value.split(kind.separator))
    return [(key, kind.keys[key], setting) for key, _, setting in pairs if key in kind.keys]


def of_compiler(names: Iterable[str]) -> list[str]:
    """Return those of the variables that only torch.compile's compiler reads."""
    described = ((name, load().get(name)) for name in names)
    return [name for name, variable in described if variable is not None and variable.read_by.keys() == {"inductor"}]


@cache
def nearest(name: str) -> str | None:
    """Return the known variable that ``name`` most likely stands for."""
    upper = name.upper()
    near = [upper] if upper in load() else difflib.get_close_matches(upper, load(), n=1)
    return near[0] if near else None


def _check(name: str, value: str, readers: Collection[str], versions: Mapping[str, str]) -> Problem | None:
    variable = load().get(name)
    if variable is None:
        return _unknown(name)
    present = [library for library in variable.read_by if library in readers]
    if not present:
        ways = tuple(GetReader(library, way_to_get(library)) for library in variable.read_by)
        return Problem(name, "unread", NobodyReads(tuple(variable.read_by)), RemoveOrGet(ways))
    fitting = [library for library in present if _reads(variable.read_by[library], versions.get(library))]
    if not fitting:
        older = tuple(f"{library} {versions[library]}" for library in present)
        wanted = tuple(f"{library} {variable.read_by[library]}" for library in present)
        return Problem(name, "unread", VersionDoesNotRead(older), RemoveOrUpdate(wanted))
    try:
        refused = refusal(
            variable.kind, value, next((versions[library] for library in fitting if library in versions), None)
        )
    except SettingsError as error:
        return Problem(name, "unknown" if isinstance(error.message, UnknownKey) else "value", error.message, error.fix)
    if refused is not None:
        return Problem(name, "value", BadValue(value, refused), Write(variable.kind.allowed()))
    return None


# Variables that are still recommended: the library, the first version that does not read them, and a profile instead.
# https://github.com/pytorch/builder/pull/460
OBSOLETE = {"MKL_DEBUG_CPU_TYPE": ("MKL", "2020.1", "mkl-native")}


def _unknown(name: str) -> Problem | None:
    """A problem for a name that is not in the catalogue, if it could change the outcome or is a slip of the pen."""
    if name in OBSOLETE:
        library, version, instead = OBSOLETE[name]
        return Problem(name, "unread", NoLongerRead(library, version), UseProfileInstead(instead))
    near = nearest(name)
    if not is_performance_variable(name):
        if near is None or abs(len(near) - len(name)) > _NEAR_LENGTH:
            return None
        if difflib.SequenceMatcher(None, name.upper(), near).ratio() < _NEAR:
            return None
    return Problem(name, "unknown", UnknownName(near), Correct("name"))


def _reads(wanted: str, version: str | None) -> bool:
    """Return whether a library of this version reads a variable; one of an unknown version may."""
    match = _READS.fullmatch(wanted)
    if match is None or match.group(1) is None or version is None:
        return True
    newer = numbers(version) >= numbers(match.group(2))
    return newer if match.group(1) == ">=" else not newer


def require(environment: Environment, inspection: Inspection, allow_unknown: bool | None = None) -> None:
    """Raise InputError if a profile sets what would have no effect in the image that was inspected.

    With ``allow_unknown`` (None: the command has no such option) names and keys that are not in the catalogue pass.
    """
    problems = [
        problem
        for problem in check(environment.variables, readers(inspection), versions(inspection))
        if not (allow_unknown and problem.kind == "unknown")
    ]
    if problems:
        first = problems[0]
        option = "--allow-unknown" if allow_unknown is False and first.kind == "unknown" else None
        in_vain = SetsInVain(first.variable, first.wrong, first.fix, option, len(problems) - 1 or None)
        raise InputError(CantBeUsed(environment.profile, in_vain))
