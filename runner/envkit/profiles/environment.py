"""An Environment: everything a profile sets for a worker, resolved for one machine. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.common import codec, yamlfile
from envkit.profiles import places
from envkit.worker.libraries import LIBRARIES
from envkit.worker.performance_variables import LISTS, is_performance_variable, settings


@dataclass(frozen=True)
class Environment:
    """The environment of a worker, and what it must observe for the profile to count as in effect."""

    profile: str
    title: str
    variables: dict[str, str]  # LD_PRELOAD is already among them
    preload: dict[str, str]  # by logical name the paths inside the image, in the order they are preloaded
    prefix: tuple[str, ...]  # stands before the interpreter, for example numactl and its options
    expect: dict[str, str | int | bool]
    numerics: str
    ranks: int = 1  # where there are several, this is the environment of each
    gpus: int = 0  # how many it needs; a container must be given the machine's then

    @property
    def may_change_results(self) -> bool:
        """Return whether it may change numerics."""
        return self.numerics != "same"

    @property
    def is_supported(self) -> bool:
        """Return whether it leaves numerics alone and overrides no vendor's check."""
        return not self.may_change_results and not overrides_vendor(self.preload)

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "prefix": list(self.prefix)}

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Environment:
        """Parse a document. Raise KeyError or ValueError if it is invalid."""
        return codec.parse(document, Environment)


def overrides_vendor(preload: Iterable[str]) -> bool:
    """Return whether one of the libraries that are preloaded overrides a vendor's check."""
    return any(name in LIBRARIES and LIBRARIES[name].overrides_vendor for name in preload)


def capabilities(prefix: Sequence[str]) -> list[str]:
    """Return what a container must be allowed for its command to start behind ``prefix``.

    Docker's default seccomp filter, and those made after it, keep numactl's system calls for who has SYS_NICE
    (https://docs.docker.com/engine/security/seccomp/).
    """
    return ["SYS_NICE"] if any(Path(word).name == "numactl" for word in prefix) else []


def clean(caller: Mapping[str, str], keep: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split the caller's variables into those a worker may inherit and those that could change the outcome.

    Variables named in ``keep`` are inherited whatever they are. Returns (inherited, removed).
    """
    kept = set(keep)
    removed = {name: value for name, value in caller.items() if is_performance_variable(name) and name not in kept}
    return {name: value for name, value in caller.items() if name not in removed}, removed


def of_caller(caller: Mapping[str, str], unchanged: Iterable[str] = ()) -> dict[str, str]:
    """Return the caller's variables without what an earlier ``eval "$(envkit env PROFILE)"`` left in lists.

    These are the settings that a shipped profile makes. A list that has no others is left out. Lists in ``unchanged``
    stay as they are, because the user asked for them.
    """
    variables = dict(caller)
    names = [name for name in LISTS if name in caller and name not in unchanged]
    earlier = _of_shipped(names) if names else {}
    for name in names:
        others = [pair for pair in settings(name, caller[name]).values() if pair not in earlier[name]]
        variables[name] = LISTS[name][0].join(others)
        if not others:
            del variables[name]
    return variables


def _of_shipped(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the settings that shipped profiles make in the lists ``names``."""
    shipped: dict[str, set[str]] = {name: set() for name in names}
    for path in places.PROFILE_FOLDER.glob("*.yaml"):
        variables = yamlfile.read(path, is_shipped=True).data.get("env", {})
        for name in shipped.keys() & variables.keys():
            shipped[name] |= {*settings(name, str(variables[name])).values()}
    return shipped
