"""Was a profile in effect in all of a sample: the processes of a user's command, several ranks, or instances?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from envkit.checks import effect
from envkit.checks.effect import Check, changed, check
from envkit.checks.effect_messages import Cpus, InheritedCpus, OwnCpus, ThreadsOnOneCpu, Together, WrittenByHook
from envkit.checks.process_scan import shorter
from envkit.common.errors import MISFITS
from envkit.engines.measurement import Measurement
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

# What only a process that computes on a GPU can show.
ON_GPUS = ("gpu.", "nccl.")
# Processes that one check names.
NAMED = 3


@dataclass(frozen=True)
class ProcessEvidence:
    """One process that left evidence.

    ``own`` are variables which the command itself set for it. ``changed`` are those of the profile's that its program
    has other than it was started with, with the value that each has now; None is one that it removed.
    """

    pid: int
    argv: tuple[str, ...]
    evidence: Mapping[str, Any]
    checks: tuple[Check, ...]
    own: Mapping[str, str]
    changed: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return all(one.holds for one in self.checks)

    def to_json(self) -> dict[str, Any]:
        checks = [
            {"key": one.key, "expected": one.expected, "seen": one.seen, "holds": one.holds, "verified": one.verified}
            for one in self.checks
        ]
        return {
            "pid": self.pid,
            "argv": list(self.argv),
            "in_effect": self.holds,
            "checks": checks,
            "set_by_the_command": dict(self.own),
            "changed_by_the_program": dict(self.changed),
            "evidence": self.evidence,
        }


def judged(
    document: Mapping[str, Any], environment: Environment, kept: Mapping[str, str], on_gpus: bool, cpus: int = 0
) -> ProcessEvidence:
    """Return what one process of a command shows; the command may have taken away what only says where things are.

    ``cpus`` is how many the command has in all (``most_cpus``); 0 where that is not known.
    """
    evidence = document["evidence"]
    kept = _not_taken_away(kept, evidence)
    own = _set_by_itself(evidence, environment, kept)
    checks = _check(_asked_of(evidence, environment, own, on_gpus), evidence, kept, own)
    checks += _placed(environment, evidence, cpus)
    now = {name: seen["now"] for name, seen in changed(environment, evidence).items()}
    since = {name: value for name, value in now.items() if value != environment.variables[name]}
    return ProcessEvidence(document["pid"], tuple(document["argv"]), evidence, tuple(checks), own, since)


def _check(
    environment: Environment,
    evidence: Mapping[str, Any],
    kept: Mapping[str, str],
    own: Mapping[str, str],
    printed: str = "",
) -> list[Check]:
    """Return ``effect.check`` of a process, and a failure for each library of the caller's LD_PRELOAD that is missing.

    ``kept`` are the caller's variables that the user kept, and ``own`` are those that the command set itself.
    """
    found = evidence["variables"].get("preloaded", {})
    callers = [found[path] for path in preloaded(kept.get(PRELOAD, "")) if path in found]
    lost = [Check("preload.kept", "mapped", seen) for seen in callers if seen != "mapped"]
    return [*check(environment, evidence, {**kept, **own}, printed), *lost]


def _not_taken_away(kept: Mapping[str, str], evidence: Mapping[str, Any]) -> dict[str, str]:
    given = evidence["variables"].get("sensitive", {})
    return {name: value for name, value in kept.items() if is_withheld(name) or name in given}


def most_cpus(evidence: Iterable[Mapping[str, Any]]) -> int:
    """How many CPUs a command has: the most that any of its processes began with."""
    return max((len(_started_on(one)) for one in evidence), default=0)


def _started_on(evidence: Mapping[str, Any]) -> set[int]:
    return expand_cpu_list((evidence.get("threads") or {}).get("started_on") or "")


def _placed(environment: Environment, evidence: Mapping[str, Any], cpus: int) -> Iterator[Check]:
    """Yield what is wrong with the CPUs that a process has, if the profile binds threads.

    A runtime that binds the thread which starts another process has that inherit a single CPU.
    """
    started, masks = _started_on(evidence), (evidence.get("threads") or {}).get("masks") or {}
    if not environment.variables.keys() & {*setting("binding")} or not started:
        return
    if len(started) < cpus:
        yield Check("threads.started_on", Cpus(cpus).to_json(), InheritedCpus(len(started)).to_json())
    elif len(masks) == 1 and cpus > 1:
        (mask, threads), *_ = masks.items()
        if threads > 1 and len(expand_cpu_list(mask)) == 1:
            yield Check("threads.masks", OwnCpus().to_json(), ThreadsOnOneCpu(threads, mask).to_json())


def any_on_gpus(evidence: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of a command's processes computed on a GPU."""
    return any(one.get("gpu") for one in evidence)


def _asked_of(
    evidence: Mapping[str, Any], environment: Environment, own: Mapping[str, str], on_gpus: bool
) -> Environment:
    """The environment as one process must show it: what starts ranks computes on no GPU itself, where ranks do.

    ``own`` is what the command set for it, which may have added to the profile's lists: to LD_PRELOAD, for example.
    """
    added = {name: own[name] for name in own.keys() & environment.variables.keys()}
    environment = replace(environment, variables={**environment.variables, **added})
    if not on_gpus or evidence.get("gpu"):
        return environment
    asked = {key: value for key, value in environment.expect.items() if not key.startswith(ON_GPUS)}
    return replace(environment, expect=asked)


def _set_by_itself(evidence: Mapping[str, Any], environment: Environment, kept: Mapping[str, str]) -> dict[str, str]:
    """Return what can change the outcome and comes from neither the profile nor the caller.

    ``stdbuf`` and tracers add themselves to what the profile preloads, and a script may add to its GLIBC_TUNABLES. A
    list that was added to is the command's own, too.
    """
    return {
        name: value
        for name, value in evidence["variables"].get("sensitive", {}).items()
        if _is_own(name, value, environment, kept)
    }


def _is_own(name: str, value: str, environment: Environment, kept: Mapping[str, str]) -> bool:
    if name in environment.variables:
        return extends(name, value, environment.variables[name])
    return kept.get(name) != value and is_performance_variable(name)


def set_by_the_command(environment: Environment, sample: Measurement, kept: Mapping[str, str]) -> dict[str, str]:
    """The variables that a user's own command, or its image, set for the main process of a sample as it is recorded.

    envkit's own workloads have none of them. The caller's that say where things are look the same, and are left out.
    """
    own = {} if sample.other_processes is None else _set_by_itself(sample.evidence, environment, kept)
    return {name: value for name, value in own.items() if is_withheld(name)}


def check_sample(environment: Environment, sample: Mapping[str, Any], kept: Mapping[str, str]) -> list[Check]:
    """Return ``effect.check`` of a sample as it is recorded; of a user's command what fails in its other processes too.

    If the same fails in several of these, or can't be verified in them, all are named, up to ``NAMED``. All of them
    may have variables that the command set for them. Each rank and each instance is checked, and whether it has CPUs
    and a GPU of its own. If the user kept LD_PRELOAD, a profile that preloads adds to it.

    Evidence of another form, which a program has written in the hook's place, is not verified.
    """
    try:
        return _check_sample(environment, sample, kept)
    except MISFITS:
        return [Check("evidence", WrittenByHook().to_json(), OtherForm().to_json(), verified=False)]


def _check_sample(environment: Environment, sample: Mapping[str, Any], kept: Mapping[str, str]) -> list[Check]:
    environment = replace(environment, variables=joined(environment.variables, kept))
    for kind in ("rank", "instance"):
        if f"{kind}s" in sample:
            return _check_each(kind, environment, sample, kept)
    is_own = "other_processes" in sample  # as the worker has it for every such command
    kept = _not_taken_away(kept, sample["evidence"]) if is_own else kept
    own = _set_by_itself(sample["evidence"], environment, kept) if is_own else {}
    on_gpus = any_on_gpus([sample["evidence"], *(one["evidence"] for one in sample.get("other_processes", ()))])
    asked = _asked_of(sample["evidence"], environment, own, on_gpus)
    checks = _check(asked, sample["evidence"], kept, own, sample["stderr"])
    cpus = most_cpus([sample["evidence"], *(one["evidence"] for one in sample.get("other_processes", ()))])
    checks += _placed(environment, sample["evidence"], cpus)
    failures: dict[tuple[str, str], list[tuple[ProcessEvidence, Check]]] = {}
    for document in sample.get("other_processes", ()):
        observed = judged(document, environment, kept, on_gpus, cpus)
        for one in observed.checks:
            if not (one.holds and one.verified):
                failures.setdefault((one.key, str(one.seen) if one.verified else ""), []).append((observed, one))
    for alike in failures.values():
        observed, one = alike[0]
        numbers = ", ".join(str(other.pid) for other, _ in alike[:NAMED]) + "…" * (len(alike) > NAMED)
        kind = "process" if len(alike) == 1 else "processes"
        checks.append(replace(one, key=f"{one.key} ({kind} {numbers}: {shorter(observed.argv)})"))
    return checks


def unrelated_complaints(environment: Environment, sample: Measurement) -> list[str]:
    """``effect.unrelated_complaints`` of a sample as it is recorded."""
    processes = sample.ranks or sample.instances
    evidence = processes[0].evidence if processes else sample.evidence
    return effect.unrelated_complaints(environment, evidence, sample.stderr)


def checks_of(sample: Mapping[str, Any]) -> list[Check]:
    """Return the checks that a sample's record has."""
    return [Check(**one) for one in sample["checks"]]


def _check_each(kind: str, environment: Environment, sample: Mapping[str, Any], kept: Mapping[str, str]) -> list[Check]:
    """Return what all ranks, or instances, have in common as that of the first; and, by its number, what fails in any.

    ``kind`` is ``rank`` or ``instance``.
    """
    each = sample[f"{kind}s"]
    first, *others = each
    checks = _check(environment, first["evidence"], kept, {}, sample["stderr"])
    found = [one for one in checks if one.holds]
    failing = {first[kind]: [one for one in checks if not one.holds]}
    open_in_first = {one.key for one in checks if not one.verified}
    for other in others:
        seen = _check(environment, other["evidence"], kept, {})
        failing[other[kind]] = [one for one in seen if not one.holds or not (one.verified or one.key in open_in_first)]
    for one in each:
        where = f"({kind} {one[kind]} on {one['node']})"
        found += [replace(failed, key=f"{failed.key} {where}") for failed in failing[one[kind]]]
    found.append(Check(f"{kind}s.cpus", "apart", _together(each, kind, "CPU", _cpus) or "apart"))
    if any(map(_gpu, each)):
        found.append(Check(f"{kind}s.gpus", "apart", _together(each, kind, "GPU", _gpu) or "apart"))
    return found


def _gpu(process: Mapping[str, Any]) -> list[str]:
    """The one that it trained on, if any."""
    uuid = (process["evidence"].get("gpu") or {}).get("uuid")
    return [uuid] if uuid else []


def _together(
    each: Sequence[Mapping[str, Any]],
    kind: str,
    what: str,
    taken_by: Callable[[Mapping[str, Any]], Sequence[int | str]],
) -> dict[str, Any] | None:
    """Return two ranks, or instances, of a node that may run on the same CPU, or trained on the same GPU.

    CPUs are those of their threads when they had trained.
    """
    taken: dict[tuple[str, int | str], int] = {}
    for process in each:
        for one in taken_by(process):
            other = taken.setdefault((process["node"], one), process[kind])
            if other != process[kind]:
                return Together(kind, other, process[kind], what, str(one), process["node"]).to_json()
    return None


def _cpus(process: Mapping[str, Any]) -> list[int]:
    """Where its threads may run: a runtime may have bound them outside of the CPUs that it was given.

    Where that could not be seen it is those.
    """
    masks: Mapping[str, int] = (process["evidence"].get("threads") or {}).get("masks") or {}
    found: set[int] = set().union(*map(expand_cpu_list, masks))
    return sorted(found) or list(process["cpus"])
