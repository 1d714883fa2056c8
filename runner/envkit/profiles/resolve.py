"""Turn a profile into an Environment for the machine that was inspected."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.messages import from_json
from envkit.profiles import needs
from envkit.profiles.catalogue_messages import way_to_get
from envkit.profiles.environment import Environment
from envkit.profiles.expressions import MACHINE_NODES, ExpressionError, expand
from envkit.profiles.inspection import Facts, Inspection
from envkit.profiles.messages import (
    BindsProcesses,
    CantBeUsed,
    CommandMissing,
    DoesNotApply,
    GpusUnusable,
    HasRanks,
    LibraryMissing,
    NeedsCores,
    PathUnpreloadable,
    TunedElsewhere,
    TunedForOther,
)
from envkit.profiles.preload_links import ENDS_A_NAME
from envkit.profiles.profile import Profile
from envkit.worker.performance_variables import PRELOAD

# torchrun gives ranks one thread where this says nothing (torch/distributed/run.py); by itself ATen has as many as MKL
# takes, which is one for each core (aten/src/ATen/ParallelOpenMP.cpp).
THREADS = "OMP_NUM_THREADS"
# Commands that bind a process: taskset(1), and numactl(8) with one of these options (--cpubind is an old name).
BINDING, NUMACTL = "taskset", "numactl"
NUMACTL_BINDS = ("--cpunodebind", "--cpubind", "--physcpubind", "--membind", "-N", "-c", "-C", "-m")


def of_rank(inspection: Inspection, ranks: int) -> Inspection:
    """Return the inspection for one of ``ranks`` processes that share the CPUs. ``whole`` has the machine's facts.

    The machine has as many NUMA nodes as before, whatever a process uses of them: MACHINE_NODES says how many. It has
    one GPU, if there are any.
    """
    if ranks <= 1:
        return inspection
    facts = inspection["facts"]
    usable, physical = facts["usable_cpus"], facts["physical_cores"]
    # a CPU set may leave out threads of some cores, and any rank may have these; a quota leaves out none
    threads_of_a_core = max(1, usable // physical if facts.get("cpu_quota") is None else -(-usable // physical))
    cores = max(1, physical // ranks)
    share: Facts = {
        **facts,
        "physical_cores": cores,
        # no part of a core: all hardware threads of each
        "usable_cpus": min(max(1, usable // ranks), cores * threads_of_a_core),
        "numa_nodes": max(1, facts["numa_nodes"] // ranks),
        MACHINE_NODES: facts["numa_nodes"],
    }
    if "gpus" in facts:
        share["gpus"] = min(1, facts["gpus"])
    return {**inspection, "facts": share, "whole": facts}


def resolve(profile: Profile, inspection: Inspection) -> Environment:
    """Fill in host facts and library paths.

    ``inspection`` is what ``envkit.worker inspect`` printed inside the image. For a rank (``of_rank``) facts are those
    of its part, but for the NUMA nodes and GPUs that a profile needs; and where nothing is said of threads there is one
    for each of its cores; so it is for a profile of several ranks. Raises InputError for a machine that has not what
    the profile needs, for a library or a prefix command that is not there, for arithmetic that has no value here, and
    for a rank that is to choose its CPUs, or to be several.
    """
    if profile.ranks > 1:
        inspection = _of_its_rank(profile, inspection)
    machine, whole_machine = needs.from_facts(inspection["facts"]), inspection.get("whole")
    facts = needs.numbers(machine)
    machine["numa_nodes"] = inspection["facts"].get(MACHINE_NODES, facts["numa_nodes"])
    if whole_machine:
        machine["gpus"] = needs.from_facts(whole_machine)["gpus"]
    _require(profile, machine, inspection)
    _require_cpu(profile, inspection)
    if whole_machine and binds(profile.prefix):
        raise InputError(CantBeUsed(profile.name, BindsProcesses(" ".join(profile.prefix))))
    preload = {}
    for library in profile.preload:
        file = inspection["libraries"].get(library)
        if file is None:
            missing = LibraryMissing(library, tuple(inspection["library_folders"]), way_to_get(library))
            raise InputError(CantBeUsed(profile.name, missing))
        if ENDS_A_NAME.search(file["path"]):
            raise InputError(PathUnpreloadable(file["path"]))
        preload[library] = file["path"]
    try:
        variables = {name: expand(value, facts) for name, value in profile.env.items()}
        prefix = tuple(expand(item, facts) for item in profile.prefix)
        expect = {key: _expected(value, facts) for key, value in profile.expect.items()}
    except ExpressionError as error:
        raise InputError(About(str(profile.path), error.message)) from None
    if prefix and inspection["commands"].get(prefix[0]) is None:
        raise InputError(CantBeUsed(profile.name, CommandMissing(prefix[0])))
    if whole_machine and THREADS not in variables:
        variables[THREADS] = str(facts["physical_cores"])
        expect = {"openmp.max_threads": facts["physical_cores"], **expect}
    if preload:
        variables = {**variables, PRELOAD: ":".join(preload.values())}
    gpus = int(expand(str(profile.needs.get("gpus", 0)), needs.numbers(machine)))
    return Environment(
        profile.name, profile.title, variables, preload, prefix, expect, profile.numerics, profile.ranks, gpus
    )


def binds(prefix: Sequence[str]) -> bool:
    """Return whether a command that workers are started with chooses CPUs, or the node of all memory."""
    programs = [Path(word).name for word in prefix]
    if BINDING in programs:
        return True
    return NUMACTL in programs and any(word.startswith(NUMACTL_BINDS) for word in prefix[programs.index(NUMACTL) + 1 :])


def _of_its_rank(profile: Profile, inspection: Inspection) -> Inspection:
    """Return the inspection for one of the profile's ranks. Raise InputError for too few cores, or inside a rank."""
    if "whole" in inspection:
        raise InputError(CantBeUsed(profile.name, HasRanks(profile.ranks)))
    cores = inspection["facts"]["physical_cores"]
    if cores < profile.ranks:
        raise InputError(DoesNotApply(profile.name, NeedsCores(profile.ranks, cores)))
    return of_rank(inspection, profile.ranks)


def _require_cpu(profile: Profile, inspection: Inspection) -> None:
    """Raise InputError for a profile that was tuned for another processor."""
    if profile.cpu is not None and (here := inspection["fingerprint"]["cpu_model"]) != profile.cpu:
        raise InputError(TunedElsewhere(profile.name, TunedForOther(profile.cpu, here)))


def _require(profile: Profile, facts: needs.Known, inspection: Inspection) -> None:
    try:
        unmet = needs.unmet(profile.needs, facts)
    except ExpressionError as error:
        raise InputError(About(str(profile.path), error.message)) from None
    if unmet is None:
        return
    fact, reason = unmet
    problem = (inspection.get("accelerator") or {}).get("problem")
    if fact == "gpus" and problem:  # the machine may have some that can't be used
        unusable = GpusUnusable(reason, inspection["python"]["executable"], from_json(problem))
        raise InputError(CantBeUsed(profile.name, unusable))
    raise InputError(DoesNotApply(profile.name, reason))


def _expected(value: str | int | bool, facts: Mapping[str, int]) -> str | int | bool:
    """Return an expected value; a text that is one ``${...}`` alone becomes a number, as the evidence has it."""
    if not isinstance(value, str):
        return value
    text = expand(value, facts)
    return int(text) if text != value and re.fullmatch(r"-?\d+", text) else text
