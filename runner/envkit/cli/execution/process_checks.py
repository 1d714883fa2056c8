"""Judge what the processes of a command left behind: was the profile in effect in each of them?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from envkit.checks.effect import shown
from envkit.checks.finding_messages import Unmet
from envkit.checks.process_messages import NotVerified, OfProcess
from envkit.checks.process_scan import shorter
from envkit.checks.sample_effect import ProcessEvidence, judged, most_cpus, not_compiled, shown_by_some
from envkit.cli.execution.messages import (
    ChangedForChildren,
    ChangedVariables,
    InEffect,
    InEffectAsFarAsKnown,
    NotInEffect,
    OwnVariables,
    RemovedVariables,
    SetVariable,
)
from envkit.common.errors import MISFITS
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.profiles.formats.python import read_at_start
from envkit.worker import left
from envkit.worker.messages.left import OtherForm

# Told as preloads; and begins with the evidence hook's own folder.
NOT_COUNTED = {"LD_PRELOAD", "PYTHONPATH"}
# Lines of a verdict that belong to the one before them.
DETAILS = (OfProcess, NotVerified)


def read(
    folder: Path, environment: Environment, kept: Mapping[str, str]
) -> tuple[list[ProcessEvidence], left.Documents[left.EvidenceDocument]]:
    """Every process that left a document in ``folder``, in the order of their numbers, and what else was left there.

    ``kept`` are the caller's variables that the command was given although they can change the outcome. Others that a
    process was given on top are the command's own doing (torchrun sets some for its ranks) and are no failure.
    """
    left_documents = left.evidence(folder, "[0-9]*.json")
    usable = []
    for document in left_documents.documents:
        if _can_be_judged(document, environment, kept):
            usable.append(document)
        else:
            left_documents.leave_out(f"{document['pid']}.json", OtherForm())
    everywhere = [document["evidence"] for document in usable]
    shown, cpus = shown_by_some(everywhere), most_cpus(everywhere)
    unread = [*not_compiled(environment, everywhere)]
    judgements = (judged(document, environment, kept, shown, cpus) for document in usable)
    processes = (replace(process, checks=(*process.checks, *unread)) for process in judgements)
    return sorted(processes, key=lambda process: process.pid), left_documents


def _can_be_judged(document: Mapping[str, object], environment: Environment, kept: Mapping[str, str]) -> bool:
    """Return whether a document has what is looked for in it: a program may have written it in the hook's place."""
    observed = document["evidence"]
    if not isinstance(observed, dict):
        return False
    try:
        verdict(environment, [judged(document, environment, kept, shown_by_some([observed]), most_cpus([observed]))])
    except MISFITS:
        return False
    return True


def verdict(environment: Environment, judged_processes: Sequence[ProcessEvidence]) -> list[Message]:
    """Return what to tell the user: one line if all is well."""
    bad = [observed for observed in judged_processes if not observed.holds]
    name, number = environment.profile, len(judged_processes)
    beside = [*_variables_of_command(judged_processes), *_changed(judged_processes)]
    if not bad:
        variables = len(environment.variables.keys() - NOT_COUNTED)
        keys = dict.fromkeys(check.key for observed in judged_processes for check in observed.checks if check.verified)
        unknown = _unverified(judged_processes)
        result = (InEffectAsFarAsKnown if unknown else InEffect)(name, number, tuple(keys), variables)
        return [result, *unknown, *beside]
    missed = [
        OfProcess(Unmet(check.key, shown(check.expected), shown(check.seen)), observed.pid, shorter(observed.argv))
        for observed in bad
        for check in observed.checks
        if not check.holds
    ]
    found_wrong = NotInEffect(name, len(bad), number) if number > 1 else NotInEffect(name)
    return [found_wrong, *missed, *beside]


def _unverified(judged_processes: Sequence[ProcessEvidence]) -> list[Message]:
    """Return what is expected and could not be told, each once, with the reason of the last process."""
    unknown = [check for observed in judged_processes for check in observed.checks if not check.verified]
    return [*{check.key: NotVerified(check.key, shown(check.seen)) for check in unknown}.values()]


def _variables_of_command(judged_processes: Sequence[ProcessEvidence]) -> list[Message]:
    names = dict.fromkeys(
        f"{name}={value}" for observed in judged_processes for name, value in observed.set_by_command.items()
    )
    return [OwnVariables(tuple(names))] if names else []


def _changed(judged_processes: Sequence[ProcessEvidence]) -> list[Message]:
    """Name what programs changed of the profile's variables, in one line for all processes that did the same."""
    alike: dict[tuple[tuple[str, str | None], ...], list[ProcessEvidence]] = {}
    for observed in judged_processes:
        if observed.changed:
            alike.setdefault(tuple(observed.changed.items()), []).append(observed)
    messages: list[Message] = []
    for changes, (first, *more) in alike.items():
        did: list[Message] = []
        if removed := tuple(name for name, value in changes if value is None):
            did.append(RemovedVariables(removed))
        did += [SetVariable(name, value) for name, value in changes if value is not None]
        keeps = all(read_at_start(name) for name, _ in changes)
        kind = ChangedForChildren if keeps else ChangedVariables
        messages.append(kind(first.pid, len(more) or None, shorter(first.argv), tuple(did)))
    return messages
