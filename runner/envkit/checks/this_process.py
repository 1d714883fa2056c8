"""Is a profile in effect in this very process, for example a notebook's kernel? Implement ``envkit.check``.

The environment at the process's start counts, as everywhere. Here a cell may have set more, and what a library reads
when it is loaded, or first needed, is as good then. The library's own report decides whether it came in time; for the
others the text that ``envkit env --format python`` prints leaves a note, as it refuses to come after torch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from envkit.checks.effect import readings, shown
from envkit.checks.evidence import Evidence, variables
from envkit.checks.finding_messages import Unmet
from envkit.checks.process_messages import (
    InEffectAsFarAsVerified,
    InEffectHere,
    NoGpuYet,
    NotInEffectHere,
    NotVerified,
    SetAfterStart,
    SetAfterTorch,
    SetBesides,
    SetHere,
)
from envkit.checks.sample_effect import ProcessEvidence, judged
from envkit.common.errors import InputError
from envkit.engines import measured_cores
from envkit.messages import Message
from envkit.profiles import profile
from envkit.profiles.environment import Environment
from envkit.profiles.formats.python import BEFORE_TORCH, read_at_start
from envkit.profiles.inspection import Inspection
from envkit.profiles.preload_links import linked
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import resolve
from envkit.rendering import text, text_of
from envkit.worker import initial_environment
from envkit.worker.evidence import collect, openmp
from envkit.worker.evidence.cpu_use import thread_masks
from envkit.worker.host import expand_cpu_list
from envkit.worker.image import inspect
from envkit.worker.performance_variables import LISTS, PRELOAD, is_performance_variable, is_withheld, joined

# torch gives a thread so many elements at least (GRAIN_SIZE of aten/src/ATen/TensorIterator.h).
GRAIN_SIZE = 32768


@dataclass
class _SetHere:
    """The profile's variables that the process was not started with and has now, by what became of them."""

    read: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # nothing tells
    late: list[str] = field(default_factory=list)  # the library that reads it was there before
    at_start: list[str] = field(default_factory=list)  # what reads it does so when a process starts

    def names(self) -> set[str]:
        return {*self.read, *self.unknown, *self.late, *self.at_start}


def check(name: str) -> bool:
    """Print whether the profile is in effect, and return it. Import torch if nobody has done so yet."""
    try:
        chosen = profile.load(name)
        _work_in_parallel()
        openmp.STARTED_ON = cpus = _started_on()
        environment = _resolved(chosen, cpus)
        initial_environment.AT_TORCH = _at_torch(initial_environment.started_variables(), os.environ)
        holds, (verdict, *details) = judge(environment, collect(), initial_environment.started_variables(), os.environ)
    except InputError as error:
        print(f"envkit: {text_of(error)}")
        return False
    of_profile = [f"  {text(detail)}" for detail in details if not isinstance(detail, SetBesides)]
    print(text(verdict), *of_profile, *(text(detail) for detail in details if isinstance(detail, SetBesides)), sep="\n")
    return holds


def _work_in_parallel() -> None:
    """As in the evidence hook: a runtime starts and binds its threads when they are first needed."""
    import torch

    torch.zeros(GRAIN_SIZE * torch.get_num_threads(), device="cpu").add_(1)


def _started_on() -> set[int]:
    """The CPUs that this process began with, as far as that shows: a runtime may have bound some of its threads.

    A kernel's threads that wait for messages began before it, and a runtime's are bound to one of these CPUs each.
    """
    return set().union(*map(expand_cpu_list, thread_masks()))


def _at_torch(started: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str] | None:
    """The variables when torch was imported, where the note of those set before names all that runtimes read and that
    are other than at the start; else None.
    """
    noted = now.get(BEFORE_TORCH, "").split()
    others = {name for name in {*started, *now} if started.get(name) != now.get(name)}
    if not noted or any(name.startswith(openmp.READ_HERE) for name in others - {*noted}):
        return None
    return {**started, **{name: now[name] for name in noted if name in now}}


def _resolved(chosen: Profile, cpus: set[int]) -> Environment:
    """The profile for this interpreter and machine, whose CPUs are counted by what this thread may use."""
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        inspection = cast(Inspection, inspect(chosen.prefix[:1], accelerators=True))
        return resolve(chosen, linked(measured_cores.applied(inspection)))
    finally:
        os.sched_setaffinity(0, bound)


def judge(
    environment: Environment, evidence: Evidence, started: Mapping[str, str], now: Mapping[str, str]
) -> tuple[bool, list[Message]]:
    """Return whether the environment is in effect, and what to tell the user: one message if all is well.

    ``started`` are the variables that this process was started with, ``now`` those that it has.
    """
    lists = {name: value for name, value in started.items() if name in LISTS}  # `envkit env` joins those of the shell
    environment = replace(environment, variables=joined(environment.variables, lists))
    noted = now.get(BEFORE_TORCH, "").split()
    changed = {name for name, value in environment.variables.items() if now.get(name) == value != started.get(name)}
    here = _set_here(environment, evidence, changed, noted)
    mine = here.names()
    observed = variables(evidence)
    present = {name: value for name, value in observed.get("sensitive", {}).items() if name not in mine}
    required = {name: value for name, value in environment.variables.items() if name not in mine - {*here.read}}
    present |= {name: required[name] for name in here.read}
    named = {name: now.get(name) for name in required if not is_performance_variable(name)}
    since = {name: change for name, change in observed.get("changed", {}).items() if name not in changed}
    evidence = {**evidence, "variables": {**observed, "sensitive": present, "named": named, "changed": since}}
    where = {name: value for name, value in present.items() if not is_withheld(name)}
    document = {"pid": os.getpid(), "argv": [], "evidence": evidence}
    process = judged(document, replace(environment, variables=required), where)
    return process.holds and not (here.late or here.at_start), _lines(environment, process, here)


def _set_here(environment: Environment, evidence: Evidence, changed: set[str], noted: list[str]) -> _SetHere:
    here = _SetHere()
    for name in environment.variables:
        if name not in changed:
            continue
        if read_at_start(name):
            here.at_start.append(name)
        elif is_performance_variable(name):  # others are for programs, which read them as they are now
            checks = readings(name, environment, evidence)
            read = name in noted or all(check.holds for check in checks)
            (here.late if not read else here.read if checks or name in noted else here.unknown).append(name)
    return here


def _lines(environment: Environment, process: ProcessEvidence, here: _SetHere) -> list[Message]:
    """Return the verdict, and what it rests on."""
    name = environment.profile
    unverified: list[Message] = [
        NotVerified(check.key, shown(check.seen)) for check in process.checks if not check.verified
    ]
    if here.unknown:
        unverified.append(SetHere(tuple(here.unknown)))
    assignments = tuple(f"{variable}={value}" for variable, value in process.set_by_command.items())
    beside = [SetBesides(assignments)] if assignments else []
    unmet: list[Message] = [
        Unmet(check.key, shown(check.expected), shown(check.seen)) for check in process.checks if not check.holds
    ]
    if unmet and environment.gpus and not process.evidence.get("gpu"):
        unmet.append(NoGpuYet())
    if here.late:
        unmet.append(SetAfterTorch(tuple(here.late)))
    if here.at_start:
        unmet.append(SetAfterStart(tuple(here.at_start), name))
    if unmet:
        return [NotInEffectHere(name), *unmet, *beside]
    keys = tuple(dict.fromkeys(check.key for check in process.checks if check.verified))
    number = len(environment.variables.keys() - {PRELOAD, *here.unknown})  # the keys name the preloads
    verdict = InEffectAsFarAsVerified if unverified else InEffectHere
    return [verdict(name, keys, number), *unverified, *beside]
