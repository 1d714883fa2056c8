"""Check whether a training computes with few threads or CPUs: who decided that, and what helps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from envkit.checks.doctor.finding import Finder, Finding, Situation, found
from envkit.checks.process_messages import (
    AccelerateOption,
    CallWithMore,
    FewCpus,
    SetMoreThere,
    StartThreads,
    StartWithMore,
    TooFewThreads,
    TorchrunKeeps,
    WidenGroup,
    WidenMpi,
    WidenParent,
    WidenProgram,
    WidenSlurm,
    WidenTool,
)
from envkit.common.messages import About
from envkit.engines.measurement import Measurement
from envkit.messages import Message, from_json
from envkit.worker.evidence.cpu_use import chosen_by, is_few
from envkit.worker.messages.cpus import (
    BoundByMpi,
    BoundByParent,
    BoundByProgram,
    BoundByRuntime,
    BoundBySlurm,
    BoundByTool,
    SetByCall,
    SetByParent,
    SetByProgram,
    SetOnLine,
    SharedByMkl,
)

TOO_FEW_THREADS, FEW_CPUS = FIX_FIRST = ("too-few-threads", "few-cpus")  # codes
# Findings about a training, whatever the profile.
OF_TRAINING = (*FIX_FIRST, "ignored-value")
# Sets OMP_NUM_THREADS to the number of cores, and nothing else that matters.
THREADS_PROFILE = "physical-cores"
# Helpers need a core if they use a larger share of a process's CPU time.
HELPERS_SHARE, TICK_S = 0.1, 0.01
# A process is another rank if it used this share of the CPU time of the process that used the most.
RANK_SHARE = 0.5


def too_few_threads(situation: Situation) -> Finding | None:
    use = _use(situation)
    if "threads_by" not in use:
        return None
    helpers = math.ceil(use["helper_cpu_s"] / max(use["cpu_s"], TICK_S) - HELPERS_SHARE)
    if use["on_gpu"] or not is_few(use["threads"] * use["ranks"] + helpers, use["cores"]):
        return None
    by, each = from_json(use["threads_by"]), _several(use)
    if situation.environment and chosen_by(situation.environment.variables)[1] == use["threads"]:
        return None  # the profile has it so
    seen = TooFewThreads(use["threads"], use["cores"], by, each)
    own = isinstance(by, BoundByProgram)
    more = (
        WidenProgram(use["machine_cpus"]) if own else _more_threads(by, max(1, use["cores"] // use["ranks"]), situation)
    )
    return found(TOO_FEW_THREADS, seen, more)


def few_cpus(situation: Situation) -> Finding | None:
    use = _use(situation)
    prefix = situation.environment.prefix if situation.environment else ()
    if "cpus_by" not in use or prefix or not is_few(use["ranks"], use["machine_cores"]):
        return None
    by = from_json(use["cpus_by"])
    wider = _wider(by, use["machine_cpus"], max(1, use["machine_cpus"] // use["ranks"]))
    return found(FEW_CPUS, FewCpus(use["cpus"], use["machine_cpus"], by, _several(use)), wider)


def trainer(processes: Sequence[Mapping[str, Any]], pid: int | None = None) -> Mapping[str, Any]:
    """Return the evidence of the process that trains: ``pid``, or else the one that used the most CPU time.

    ``processes`` holds the evidence of each process, the main process first. Others that used about as much CPU time
    count as ranks, except its parents and children.
    """
    known = [one for one in processes if "cpu_s" in (one.get("cpu_use") or {})]
    if not known:
        return processes[0]
    chosen = max(known, key=lambda one: (one["cpu_use"]["pid"] == pid, one["cpu_use"]["cpu_s"]))
    use = chosen["cpu_use"]
    beside = (one["cpu_use"] for one in known if one["cpu_use"]["pid"] not in use["above"])
    alike = sum(one["cpu_s"] >= RANK_SHARE * use["cpu_s"] and use["pid"] not in one["above"] for one in beside)
    return {**chosen, "cpu_use": {**use, "ranks": max(use["ranks"], alike)}}


def trainer_of(sample: Measurement) -> Mapping[str, Any]:
    """Return the evidence of the process that trains in a sample; without its ``cpu_use`` if envkit shared the CPUs."""
    if sample.ranks is not None or sample.instances is not None:
        return {name: value for name, value in sample.evidence.items() if name != "cpu_use"}
    others = (one.evidence for one in sample.other_processes or ())
    return trainer([sample.evidence, *others], sample.observed.pid if sample.observed else None)


def in_all_arms(found: Sequence[tuple[str, Finding]], arms: int) -> list[Finding]:
    """Return each finding with the name of its arm; those that all ``arms`` have alike once, and without a name."""
    alike: dict[tuple[Any, ...], list[tuple[str, Finding]]] = {}
    for number, (arm, one) in enumerate(found):
        key = _kind(one.seen) if one.code in OF_TRAINING else (number,)
        alike.setdefault((one.code, *key), []).append((arm, one))
    named = list[Finding]()
    for same in alike.values():
        if same[0][1].code in OF_TRAINING and len(same) == arms:
            named.append(same[0][1])
        else:
            named += [replace(one, seen=About(arm, one.seen)) for arm, one in same]
    return named


def _kind(seen: Message) -> tuple[Any, ...]:
    """Return what makes a finding the same in another process, whose number is another one."""
    values = dict(seen.values())
    by = values.pop("by", None)
    return (*values.values(), type(by), by.values().get("variable") if isinstance(by, Message) else None)


def _use(situation: Situation) -> Mapping[str, Any]:
    return (situation.evidence or {}).get("cpu_use") or {}


def _several(use: Mapping[str, Any]) -> int | None:
    return use["ranks"] if use["ranks"] > 1 else None


def _more_threads(by: Message, cores: int, situation: Situation) -> Message:
    """Return how to compute with so many ``cores`` in each process."""
    if isinstance(by, SetByCall):
        return CallWithMore(cores)
    if isinstance(by, SharedByMkl):
        return StartThreads("OMP_NUM_THREADS", cores)
    assert isinstance(by, SetByProgram | SetOnLine | SetByParent), "something set a variable"
    names = tuple(one.partition("=")[0] for one in by.variable.split(", "))
    if isinstance(by, SetByProgram):
        return StartWithMore(names, cores, None if any(map(situation.variable, names)) else THREADS_PROFILE)
    if isinstance(by, SetOnLine):
        return SetMoreThere(names, cores)
    if "torchrun" in by.starter or "torch.distributed" in by.starter:
        return TorchrunKeeps(names[0], cores)
    return AccelerateOption(cores) if "accelerate" in by.starter else SetMoreThere(names, cores, by.starter)


def _wider(by: Message, machine: int, each: int) -> Message:
    """Return what gives ``each`` process more of the ``machine``'s CPUs."""
    last = machine - 1
    if isinstance(by, BoundByTool):
        return WidenTool(by.tool, last)
    if isinstance(by, BoundBySlurm):
        return WidenSlurm(each)
    if isinstance(by, BoundByMpi):
        return WidenMpi()
    if isinstance(by, BoundByRuntime):
        return WidenProgram(machine, by.variable)
    if isinstance(by, BoundByParent):
        return WidenParent(by.starter, last)
    return WidenGroup()


CPU_USE_CHECKS: tuple[Finder, ...] = (too_few_threads, few_cpus)
