"""Check whether a training computes with few threads or CPUs: who decided that, and what helps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

from envkit.checks.doctor.finding import Finder, Finding, Situation, found
from envkit.checks.evidence import Evidence, cpu_use
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
from envkit.worker.evidence.cpu_use import CpuUseDocument, chosen_by, is_few
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
    threads = use.get("threads")
    if "threads_by" not in use or threads is None:
        return None
    helpers = math.ceil(use["helper_cpu_s"] / max(use["cpu_s"], TICK_S) - HELPERS_SHARE)
    if use["on_gpu"] or not is_few(threads * use["ranks"] + helpers, use["cores"]):
        return None
    if situation.environment and chosen_by(situation.environment.variables)[1] == threads:
        return None  # the profile has it so
    by = from_json(use["threads_by"])
    if isinstance(by, BoundByProgram):
        more: Message = WidenProgram(use["machine_cpus"])
    else:
        more = _more_threads(by, max(1, use["cores"] // use["ranks"]), situation)
    return found(TOO_FEW_THREADS, TooFewThreads(threads, use["cores"], by, _several(use)), more)


def few_cpus(situation: Situation) -> Finding | None:
    use = _use(situation)
    prefix = situation.environment.prefix if situation.environment else ()
    if "cpus_by" not in use or prefix or not is_few(use["ranks"], use["machine_cores"]):
        return None
    by = from_json(use["cpus_by"])
    wider = _wider(by, use["machine_cpus"], max(1, use["machine_cpus"] // use["ranks"]))
    return found(FEW_CPUS, FewCpus(use["cpus"], use["machine_cpus"], by, _several(use)), wider)


def trainer(processes: Sequence[Evidence], pid: int | None = None) -> Evidence:
    """Return the evidence of the process that trains: ``pid``, or else the one that used the most CPU time.

    ``processes`` holds the evidence of each process, the main process first. Others that used about as much CPU time
    count as ranks, except its parents and children.
    """
    uses = [(process, cpu_use(process)) for process in processes if "cpu_s" in cpu_use(process)]
    if not uses:
        return processes[0]
    chosen, use = max(uses, key=lambda process: (process[1]["pid"] == pid, process[1]["cpu_s"]))
    others = [other for _, other in uses if other["pid"] not in use["above"]]
    alike = sum(other["cpu_s"] >= RANK_SHARE * use["cpu_s"] and use["pid"] not in other["above"] for other in others)
    return {**chosen, "cpu_use": {**use, "ranks": max(use["ranks"], alike)}}


def trainer_of(sample: Measurement) -> Evidence:
    """Return the evidence of the process that trains in a sample; without its ``cpu_use`` if envkit shared the CPUs."""
    if sample.ranks is not None or sample.instances is not None:
        return {name: value for name, value in sample.evidence.items() if name != "cpu_use"}
    others = (process.evidence for process in sample.other_processes or ())
    return trainer([sample.evidence, *others], sample.observed.pid if sample.observed else None)


def in_all_arms(findings: Sequence[tuple[str, Finding]], arms: int) -> list[Finding]:
    """Return each finding with the name of its arm; those that all ``arms`` have alike once, and without a name."""
    alike: dict[tuple[Hashable, ...], list[tuple[str, Finding]]] = {}
    for number, (arm, finding) in enumerate(findings):
        key = _kind(finding.seen) if finding.code in OF_TRAINING else (number,)
        alike.setdefault((finding.code, *key), []).append((arm, finding))
    named = list[Finding]()
    for same in alike.values():
        if same[0][1].code in OF_TRAINING and len(same) == arms:
            named.append(same[0][1])
        else:
            named += [replace(finding, seen=About(arm, finding.seen)) for arm, finding in same]
    return named


def _kind(message: Message) -> tuple[Hashable, ...]:
    """Return what makes a finding the same in another process, whose number is another one."""
    values = dict(message.values())
    by = values.pop("by", None)
    return (*values.values(), type(by), by.values().get("variable") if isinstance(by, Message) else None)


def _use(situation: Situation) -> CpuUseDocument:
    return cpu_use(situation.evidence or {})


def _several(use: CpuUseDocument) -> int | None:
    return use["ranks"] if use["ranks"] > 1 else None


def _more_threads(by: Message, cores: int, situation: Situation) -> Message:
    """Return how to compute with so many ``cores`` in each process."""
    if isinstance(by, SetByCall):
        return CallWithMore(cores)
    if isinstance(by, SharedByMkl):
        return StartThreads("OMP_NUM_THREADS", cores)
    assert isinstance(by, SetByProgram | SetOnLine | SetByParent), "something set a variable"
    names = tuple(setting.partition("=")[0] for setting in by.variable.split(", "))
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
