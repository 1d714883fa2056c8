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
# torchrun gives ranks one thread where this says nothing (torch/distributed/run.py); by itself ATen has as many as MKL
# takes, which is one for each core (aten/src/ATen/ParallelOpenMP.cpp).
THREADS = "OMP_NUM_THREADS"
# Prefixes that say which CPUs a process runs on: taskset(1), numactl(8).
BINDING = ("taskset", "--cpunodebind", "-N", "--physcpubind", "-C")


def of_rank(inspection: Mapping[str, Any], parts: int) -> Mapping[str, Any]:
    """What one of ``parts`` processes that share the CPUs has: its part of the facts, beside those of the ``whole``."""
    facts = inspection["facts"]
    cores, threads = int(facts["physical_cores"]), int(facts["usable_cpus"])
    own = {name: max(1, int(facts[name]) // parts) for name in FACTS}
    # whole cores, with all their hardware threads
    own["usable_cpus"] = min(own["usable_cpus"], own["physical_cores"] * max(1, -(-threads // cores)))
    return {**inspection, "facts": {**facts, **own}, "whole": facts} if parts > 1 else inspection


def resolve(profile: Profile, inspection: Mapping[str, Any]) -> Environment:
    """Fill in host facts and library paths.

    ``inspection`` is what ``runner.worker inspect`` printed inside the image. For a rank (``of_rank``) facts are those
    of its part, but for the NUMA nodes that a profile needs; and where nothing is said of threads there is one for each
    of its cores; so it is for a profile of several ranks. Raises InputError for a machine that has not what the profile
    needs, for a library or a prefix command that is not there, for arithmetic that has no value here, and for a rank
    that is to choose its CPUs, or to be several.
    """
    if profile.ranks > 1:
        inspection = _of_its_rank(profile, inspection)
    facts = {name: int(inspection["facts"][name]) for name in FACTS}
    whole = inspection.get("whole")
    _require(profile, {**facts, "numa_nodes": int((whole or facts)["numa_nodes"])})
    if whole and any(word.startswith(BINDING) for word in profile.prefix):
        raise InputError(
            f"profile '{profile.name}' says which CPUs to take ('{' '.join(profile.prefix)}'), and --nproc gives each "
            "rank some of its own; leave one of them out"
        )
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
    if whole and THREADS not in variables:
        variables[THREADS] = str(facts["physical_cores"])
        expect = {"openmp.max_threads": facts["physical_cores"], **expect}
    if preload:
        variables["LD_PRELOAD"] = ":".join(preload.values())
    given = (variables, preload, prefix, expect, profile.numerics, profile.ranks)
    return Environment(profile.name, profile.title, *given)


def _of_its_rank(profile: Profile, inspection: Mapping[str, Any]) -> Mapping[str, Any]:
    """What one of the profile's ranks has. Raises InputError where there are too few CPUs, or it is one of others."""
    if "whole" in inspection:
        raise InputError(f"profile '{profile.name}' has {profile.ranks} ranks of its own; leave --nproc out")
    usable = inspection["facts"]["usable_cpus"]
    if usable < profile.ranks:
        raise InputError(
            f"profile '{profile.name}' trains on {profile.ranks} ranks, and here {usable} CPUs are usable: "
            "it does not apply to this machine; choose another"
        )
    return of_rank(inspection, profile.ranks)


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
