"""Turn a profile into an Environment for the machine that was inspected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runner.environment import Environment
from runner.errors import InputError
from runner.expressions import FACTS, ExpressionError, expand
from runner.profile import Profile

# How to get a library that is missing, by logical name.
GET = {
    "intel-openmp": "pip install intel-openmp",
    "llvm-openmp": "apt-get install libomp5",
    "jemalloc": "apt-get install libjemalloc2, or conda install -c conda-forge jemalloc",
    "tcmalloc": "apt-get install libtcmalloc-minimal4, or conda install -c conda-forge gperftools",
    "mimalloc": "apt-get install libmimalloc2.0",
    "mkl-dispatch": "the kit brings it, for x86-64 only",
    "flush-to-zero": "the kit brings it, for x86-64 only",
}


def resolve(profile: Profile, inspection: Mapping[str, Any]) -> Environment:
    """Fill in host facts and library paths.

    ``inspection`` is what ``runner.worker inspect`` printed inside the image. Raises InputError for a machine that has
    not what the profile needs, for a library or a prefix command that is not there, and for arithmetic that has no
    value here.
    """
    facts = {name: int(inspection["facts"][name]) for name in FACTS}
    _require(profile, facts)
    preload = {}
    for library in profile.preload:
        found = inspection["libraries"].get(library)
        if found is None:
            folders = ", ".join(inspection["library_folders"])
            raise InputError(
                f"profile '{profile.name}' preloads {library}, which is not installed "
                f"(looked in {folders}); get it with: {GET[library]}"
            )
        if re.search(r"[\s:]", found["path"]):
            raise InputError(
                f"{found['path']}: can't be preloaded, as the loader splits LD_PRELOAD at blanks and colons; "
                "move the project to a folder without them"
            )
        preload[library] = found["path"]
    try:
        variables = {name: expand(value, facts) for name, value in profile.env.items()}
        prefix = tuple(expand(item, facts) for item in profile.prefix)
        expect = {key: _expected(value, facts) for key, value in profile.expect.items()}
    except ExpressionError as error:
        raise InputError(f"{profile.path}: {error}") from None
    if prefix and inspection["commands"].get(prefix[0]) is None:
        raise InputError(
            f"profile '{profile.name}' starts workers with '{prefix[0]}', which is not installed; install it"
        )
    if preload:
        variables["LD_PRELOAD"] = ":".join(preload.values())
    return Environment(profile.name, profile.title, variables, preload, prefix, expect, profile.numerics)


def _require(profile: Profile, facts: Mapping[str, int]) -> None:
    """Raise InputError for the first host fact that is less than what the profile needs."""
    for fact, wanted in profile.needs.items():
        try:
            least = int(expand(str(wanted), facts))
        except ExpressionError as error:
            raise InputError(f"{profile.path}: {error}") from None
        if facts[fact] < least:
            raise InputError(
                f"profile '{profile.name}' needs {fact} to be {least} or more, and here it is {facts[fact]}: "
                "it does not apply to this machine; choose another"
            )


def _expected(value: str | int | bool, facts: Mapping[str, int]) -> str | int | bool:
    """A text that is one whole ``${...}`` stands for a number, as the evidence has it."""
    if not isinstance(value, str):
        return value
    text = expand(value, facts)
    return int(text) if text != value and re.fullmatch(r"-?\d+", text) else text
