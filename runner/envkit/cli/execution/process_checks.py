"""Judge what the processes of a command left behind: was the profile in effect in each of them?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.checks.effect import shown
from envkit.checks.process_scan import processes, shorter
from envkit.checks.sample_effect import ProcessEvidence, any_on_gpus, judged, most_cpus
from envkit.profiles.environment import Environment
from envkit.profiles.formats.python import read_at_start
from envkit.rendering import text

# Told as preloads; and begins with the evidence hook's own folder.
NOT_COUNTED = {"LD_PRELOAD", "PYTHONPATH"}


def read(folder: Path, environment: Environment, kept: Mapping[str, str]) -> list[ProcessEvidence]:
    """Every process that left a document in ``folder``, in the order of their numbers.

    ``kept`` are the caller's variables that the command was given although they can change the outcome. Others that a
    process was given on top are the command's own doing (torchrun sets some for its ranks) and are no failure.
    """
    documents = [json.loads(path.read_text()) for path in folder.glob("[0-9]*.json")]
    on_gpus = any_on_gpus(one["evidence"] for one in documents)
    cpus = most_cpus(one["evidence"] for one in documents)
    return sorted((judged(one, environment, kept, on_gpus, cpus) for one in documents), key=lambda one: one.pid)


def verdict(environment: Environment, judged_processes: Sequence[ProcessEvidence]) -> list[str]:
    """What to tell the user: one line where all is well."""
    bad = [observed for observed in judged_processes if not observed.holds]
    name = environment.profile
    if not bad:
        variables = len(environment.variables.keys() - NOT_COUNTED)
        keys = dict.fromkeys(one.key for observed in judged_processes for one in observed.checks if one.verified)
        checked = [*keys, f"{variables} variable{'s' * (variables != 1)}"]
        unknown = _unverified(judged_processes)
        how_far = ", as far as it could be verified," if unknown else ""
        return [
            f"{name} was in effect{how_far} in {processes(len(judged_processes))} (checked: {', '.join(checked)})",
            *unknown,
            *_own(judged_processes),
            *_changed(environment, judged_processes),
        ]
    where = f" in {len(bad)} of {processes(len(judged_processes))}" if len(judged_processes) > 1 else ""
    lines = [f"{name} was NOT in effect{where}"]
    for observed in bad:
        lines += [
            f"  {one.key}: expected {text(shown(one.expected))}, seen {text(shown(one.seen))} "
            f"(process {observed.pid}: {shorter(observed.argv)})"
            for one in observed.checks
            if not one.holds
        ]
    return [*lines, *_own(judged_processes), *_changed(environment, judged_processes)]


def _unverified(judged_processes: Sequence[ProcessEvidence]) -> list[str]:
    """What is expected and could not be told, each once, with the reason of the last process."""
    unknown = [one for observed in judged_processes for one in observed.checks if not one.verified]
    return [*{one.key: f"  {one.key} was not verified: {text(shown(one.seen))}" for one in unknown}.values()]


def _own(judged_processes: Sequence[ProcessEvidence]) -> list[str]:
    names = dict.fromkeys(f"{name}={value}" for observed in judged_processes for name, value in observed.own.items())
    return [f"the command itself set, for processes of its own: {', '.join(names)}"] if names else []


def _changed(environment: Environment, judged_processes: Sequence[ProcessEvidence]) -> list[str]:
    """Name what programs changed of the profile's variables, in one line for all processes that did the same."""
    alike: dict[str, list[ProcessEvidence]] = {}
    for observed in judged_processes:
        removed = [name for name, value in observed.changed.items() if value is None]
        did = [f"removed {', '.join(removed)} from its environment"] if removed else []
        did += [f"set {name}={value}" for name, value in observed.changed.items() if value is not None]
        if did:
            keeps = all(map(read_at_start, observed.changed))
            lacks = (
                "it keeps the profile's, but processes that it starts lack it"
                if keeps
                else ("processes that it starts lack the profile's")
            )
            what = f"{' and '.join(did)}: {lacks}"
            alike.setdefault(what, []).append(observed)
    return [
        f"process {first.pid}{f' and {len(more)} more' if more else ''} ({shorter(first.argv)}) {what}"
        for what, (first, *more) in alike.items()
    ]
