"""Was a profile in effect in all of a sample: the processes of a user's command, several ranks, or instances?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from envkit.checks import effect
from envkit.checks.effect import Check, changed, check
from envkit.checks.effect_messages import (
    CompiledNothing,
    Cpus,
    InheritedCpus,
    OwnCpus,
    ReadBy,
    ThreadsOnOneCpu,
    Together,
    WrittenByHook,
)
from envkit.checks.evidence import Evidence, ProcessDocument, SampleDocument, part, threads, variables
from envkit.checks.process_scan import shorter
from envkit.common.errors import MISFITS
from envkit.engines.measurement import Measurement
from envkit.profiles import catalogue
from envkit.profiles.environment import Environment
from envkit.worker.host import expand_cpu_list
from envkit.worker.libraries import setting
from envkit.worker.messages.left import OtherForm
from envkit.worker.performance_variables import (
    PRELOAD,
    extends,
    is_performance_variable,
    is_withheld,
    joined,
    preloaded,
)

# Only a process that computes on a GPU can show these.
ON_GPUS, OF_COMPILER = ("gpu.", "nccl."), "compiler."
# Processes that one check names.
NAMED = 3
Kind = Literal["rank", "instance"]


@dataclass(frozen=True)
class ProcessEvidence:
    """One process that left evidence.

    ``set_by_command`` are variables which the command itself set for it. ``changed`` are those of the profile's that
    its program has other than it was started with, with the value that each has now; None is one that it removed.
    """

    pid: int
    argv: tuple[str, ...]
    evidence: Evidence
    checks: tuple[Check, ...]
    set_by_command: Mapping[str, str]
    changed: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    def to_json(self) -> dict[str, object]:
        checks = [
            {
                "key": check.key,
                "expected": check.expected,
                "seen": check.seen,
                "holds": check.holds,
                "verified": check.verified,
            }
            for check in self.checks
        ]
        return {
            "pid": self.pid,
            "argv": list(self.argv),
            "in_effect": self.holds,
            "checks": checks,
            "set_by_the_command": dict(self.set_by_command),
            "changed_by_the_program": dict(self.changed),
            "evidence": self.evidence,
        }


def judged(
    document: Mapping[str, object],
    environment: Environment,
    kept: Mapping[str, str],
    shown: Sequence[str] = (),
    cpus: int = 0,
) -> ProcessEvidence:
    """Return what one process of a command shows; the command may have taken away what only says where things are.

    ``shown`` is what only some of the command's processes show (``shown_by_some``). ``cpus`` is how many the command
    has in all (``most_cpus``); 0 where that is not known.
    """
    process = cast(ProcessDocument, document)
    evidence = process["evidence"]
    kept = _not_taken_away(kept, evidence)
    set_by_command = _set_by_itself(evidence, environment, kept)
    checks = _check(_required_of(evidence, environment, set_by_command, shown), evidence, kept, set_by_command)
    checks += _placed(environment, evidence, cpus)
    now = {name: change["now"] for name, change in changed(environment, evidence).items()}
    since = {name: value for name, value in now.items() if value != environment.variables[name]}
    return ProcessEvidence(process["pid"], tuple(process["argv"]), evidence, tuple(checks), set_by_command, since)


def _check(
    environment: Environment,
    evidence: Evidence,
    kept: Mapping[str, str],
    set_by_command: Mapping[str, str],
    printed: str = "",
) -> list[Check]:
    """Return ``effect.check`` of a process, and a failure for each library of the caller's LD_PRELOAD that is missing.

    ``kept`` are the caller's variables that the user kept, and ``set_by_command`` those that the command set itself.
    """
    observed = variables(evidence).get("preloaded", {})
    callers = [observed[path] for path in preloaded(kept.get(PRELOAD, "")) if path in observed]
    lost = [Check("preload.kept", "mapped", mapped) for mapped in callers if mapped != "mapped"]
    return [*check(environment, evidence, {**kept, **set_by_command}, printed), *lost]


def _not_taken_away(kept: Mapping[str, str], evidence: Evidence) -> dict[str, str]:
    present = variables(evidence).get("sensitive", {})
    return {name: value for name, value in kept.items() if is_withheld(name) or name in present}


def most_cpus(evidence: Iterable[Evidence]) -> int:
    """Return how many CPUs a command has: the most that any of its processes began with."""
    return max((len(_started_on(process)) for process in evidence), default=0)


def _started_on(evidence: Evidence) -> set[int]:
    return expand_cpu_list(threads(evidence).get("started_on") or "")


def _placed(environment: Environment, evidence: Evidence, cpus: int) -> Iterator[Check]:
    """Yield what is wrong with the CPUs that a process has, if the profile binds threads.

    A runtime that binds the thread which starts another process has that inherit a single CPU.
    """
    started, masks = _started_on(evidence), threads(evidence).get("masks") or {}
    if not environment.variables.keys() & {*setting("binding")} or not started:
        return
    if len(started) < cpus:
        yield Check("threads.started_on", Cpus(cpus).to_json(), InheritedCpus(len(started)).to_json())
    elif len(masks) == 1 and cpus > 1:
        (mask, number), *_ = masks.items()
        if number > 1 and len(expand_cpu_list(mask)) == 1:
            yield Check("threads.masks", OwnCpus().to_json(), ThreadsOnOneCpu(number, mask).to_json())


def shown_by_some(evidence: Iterable[Evidence]) -> list[str]:
    """Return the beginnings of the keys that only those of a command's processes show which compute or compile."""
    processes = [*evidence]
    on_gpus = ON_GPUS if any(process.get("gpu") for process in processes) else ()
    compiled = any(part(process, "compiler").get("backend") == "inductor" for process in processes)
    return [*on_gpus, *([OF_COMPILER] if compiled else [])]


def _required_of(
    evidence: Evidence, environment: Environment, set_by_command: Mapping[str, str], shown: Sequence[str]
) -> Environment:
    """Return the environment as a process must show it.

    A process that starts ranks computes on no GPU and compiles nothing itself, where ranks do.

    ``set_by_command`` is what the command set for it. It may have added to the profile's lists, as to LD_PRELOAD.
    """
    added = {name: set_by_command[name] for name in set_by_command.keys() & environment.variables.keys()}
    environment = replace(environment, variables={**environment.variables, **added})
    by_others = tuple({*shown}.difference(shown_by_some([evidence])))
    expected = {key: value for key, value in environment.expect.items() if not key.startswith(by_others)}
    return replace(environment, expect=expected)


def _set_by_itself(evidence: Evidence, environment: Environment, kept: Mapping[str, str]) -> dict[str, str]:
    """Return what can change the outcome and comes from neither the profile nor the caller.

    ``stdbuf`` and tracers add themselves to what the profile preloads, and a script may add to its GLIBC_TUNABLES. A
    list that was added to is the command's own, too.
    """
    return {
        name: value
        for name, value in variables(evidence).get("sensitive", {}).items()
        if _is_own(name, value, environment, kept)
    }


def _is_own(name: str, value: str, environment: Environment, kept: Mapping[str, str]) -> bool:
    if name in environment.variables:
        return extends(name, value, environment.variables[name])
    return kept.get(name) != value and is_performance_variable(name)


def set_by_the_command(environment: Environment, sample: Measurement, kept: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a user's own command, or its image, set for the main process of a recorded sample.

    envkit's own workloads have none of them. The caller's that say where things are look the same, and are left out.
    """
    set_by_command = {} if sample.other_processes is None else _set_by_itself(sample.evidence, environment, kept)
    return {name: value for name, value in set_by_command.items() if is_withheld(name)}


def check_sample(environment: Environment, sample: Mapping[str, object], kept: Mapping[str, str]) -> list[Check]:
    """Return ``effect.check`` of a sample as it is recorded; of a user's command what fails in its other processes too.

    If the same fails in several of these, or can't be verified in them, all are named, up to ``NAMED``. All of them
    may have variables that the command set for them. Each rank and each instance is checked, and whether it has CPUs
    and a GPU of its own. If the user kept LD_PRELOAD, a profile that preloads adds to it.

    Evidence of another form, which a program has written in the hook's place, is not verified.
    """
    try:
        return _check_sample(environment, cast(SampleDocument, sample), kept)
    except MISFITS:
        return [Check("evidence", WrittenByHook().to_json(), OtherForm().to_json(), verified=False)]


def _check_sample(environment: Environment, sample: SampleDocument, kept: Mapping[str, str]) -> list[Check]:
    environment = replace(environment, variables=joined(environment.variables, kept))
    if "ranks" in sample:
        return _check_each("rank", sample["ranks"], environment, kept, sample["stderr"])
    if "instances" in sample:
        return _check_each("instance", sample["instances"], environment, kept, sample["stderr"])
    evidence, others = sample["evidence"], sample.get("other_processes", [])
    of_user = "other_processes" in sample  # as the worker has it for every command of a user
    kept = _not_taken_away(kept, evidence) if of_user else kept
    set_by_command = _set_by_itself(evidence, environment, kept) if of_user else {}
    everywhere = [evidence, *(process["evidence"] for process in others)]
    shown = shown_by_some(everywhere)
    checks = _check(
        _required_of(evidence, environment, set_by_command, shown), evidence, kept, set_by_command, sample["stderr"]
    )
    cpus = most_cpus(everywhere)
    checks += _placed(environment, evidence, cpus)
    failures: dict[tuple[str, str], list[tuple[ProcessEvidence, Check]]] = {}
    for document in others:
        process = judged(document, environment, kept, shown, cpus)
        for failed in process.checks:
            if not (failed.holds and failed.verified):
                alike = failures.setdefault((failed.key, str(failed.seen) if failed.verified else ""), [])
                alike.append((process, failed))
    for alike in failures.values():
        process, failed = alike[0]
        numbers = ", ".join(str(other.pid) for other, _ in alike[:NAMED]) + "…" * (len(alike) > NAMED)
        noun = "process" if len(alike) == 1 else "processes"
        checks.append(replace(failed, key=f"{failed.key} ({noun} {numbers}: {shorter(process.argv)})"))
    return [*checks, *not_compiled(environment, everywhere)]


def not_compiled(environment: Environment, everywhere: Iterable[Evidence]) -> Iterator[Check]:
    """Yield a failure for each of the profile's variables that only Inductor reads, if no process compiled by it."""
    backends = {part(evidence, "compiler").get("backend") for evidence in everywhere}
    if backends.isdisjoint({None, "inductor"}):
        for name in catalogue.of_compiler(environment.variables):
            yield Check(f"variable {name}", ReadBy(("Inductor",)).to_json(), CompiledNothing().to_json())


def unrelated_complaints(environment: Environment, sample: Measurement) -> list[str]:
    """Return ``effect.unrelated_complaints`` of a recorded sample."""
    processes = sample.ranks or sample.instances
    evidence = processes[0].evidence if processes else sample.evidence
    return effect.unrelated_complaints(environment, evidence, sample.stderr)


def _check_each(
    kind: Kind, processes: Sequence[ProcessDocument], environment: Environment, kept: Mapping[str, str], printed: str
) -> list[Check]:
    """Return the checks that hold in the first rank, or instance; and, by its number, each check that fails in any."""
    first, *others = processes
    checks = _check(environment, first["evidence"], kept, {}, printed)
    common = [check for check in checks if check.holds]
    failing = {first[kind]: [check for check in checks if not check.holds]}
    open_in_first = {check.key for check in checks if not check.verified}
    for other in others:
        failing[other[kind]] = [
            check
            for check in _check(environment, other["evidence"], kept, {})
            if not check.holds or not (check.verified or check.key in open_in_first)
        ]
    for process in processes:
        where = f"({kind} {process[kind]} on {process['node']})"
        common += [replace(failed, key=f"{failed.key} {where}") for failed in failing[process[kind]]]
    common.append(Check(f"{kind}s.cpus", "apart", _together(processes, kind, "CPU", _cpus) or "apart"))
    common += not_compiled(environment, (process["evidence"] for process in processes))
    if any(map(_gpu, processes)):
        common.append(Check(f"{kind}s.gpus", "apart", _together(processes, kind, "GPU", _gpu) or "apart"))
    return common


def _gpu(process: ProcessDocument) -> list[object]:
    """Return the UUID of the GPU that a process trained on, if any."""
    uuid = part(process["evidence"], "gpu").get("uuid")
    return [uuid] if uuid else []


def _together(
    processes: Sequence[ProcessDocument],
    kind: Kind,
    resource: str,
    taken_by: Callable[[ProcessDocument], Sequence[object]],
) -> dict[str, object] | None:
    """Return two ranks, or instances, of a node that may run on the same CPU, or trained on the same GPU.

    CPUs are those of their threads when they had trained.
    """
    taken: dict[tuple[str, object], int] = {}
    for process in processes:
        for unit in taken_by(process):
            other = taken.setdefault((process["node"], unit), process[kind])
            if other != process[kind]:
                return Together(kind, other, process[kind], resource, str(unit), process["node"]).to_json()
    return None


def _cpus(process: ProcessDocument) -> list[int]:
    """Return the CPUs on which the threads of a process may run; those that it began with if no probe looked.

    A runtime may have bound threads outside of the CPUs that the process began with.
    """
    masks = threads(process["evidence"]).get("masks") or {}
    cpus: set[int] = set().union(*map(expand_cpu_list, masks))
    return sorted(cpus) or list(process["cpus"])
