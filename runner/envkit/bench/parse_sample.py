"""From how a worker ended to the sample that it printed, or to what is wrong with it, in words."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from envkit.bench.blocks import INITIAL_WEIGHTS
from envkit.bench.events import SampleEvent
from envkit.bench.messages import WorkerEnded, WorkerReported
from envkit.bench.plan import Arm, Plan
from envkit.checks import process_limit
from envkit.engines.base import Outcome
from envkit.engines.messages import ExitStatus, Killed
from envkit.messages import Message, from_json
from envkit.rendering import text
from envkit.worker import messages as _of_workers  # noqa: F401  from_json knows those that were imported
from envkit.worker.modes import Options
from envkit.worker.workloads import loader_epochs

# What a worker's document must have to be a sample, or a reading of the reference kernel.
SAMPLE_KEYS = {"seconds", "step_s", "losses", "digests", "usage", "evidence"}
KERNEL_KEYS = {"seconds", "digest"}
# The digest of a workload's code, and of how it is trained.
CODE = "code"


def held_against(event: SampleEvent, plan: Plan, arm: Arm) -> SampleEvent:
    """A sample, for one of ``arm``: another engine or image may have another PyTorch.

    That of another image may make other weights to begin with; and the digest of the code tells sizes of batches apart.
    """
    measured = plan.arm(event["arm"])
    if plan.options_of(measured) != plan.options_of(arm):
        event = _without(event, CODE)
    if measured.target == arm.target:
        return event
    event = {**event, "evidence": {**event["evidence"], "torch": {}}}
    if measured.image == arm.image:
        return event
    return _without(event, INITIAL_WEIGHTS)


def _without(event: SampleEvent, digest: str) -> SampleEvent:
    return {**event, "digests": {name: found for name, found in event["digests"].items() if name != digest}}


def worker_problem(outcome: Outcome) -> Message | None:
    """Return why a worker failed, or None if it did not.

    The worker's own report, in the document that it printed, takes the place of an exit status. What an engine knows
    beyond that status, such as a memory limit that was reached, stands beside the report.
    """
    failure = outcome.failure
    if failure is None:
        return None
    for line in outcome.stdout.splitlines():  # of several nodes each may have one
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)["problem"]
            problem = from_json(told) if isinstance(told, dict) else str(told)
            of_status = isinstance(failure, ExitStatus) or (isinstance(failure, Killed) and failure.limit is None)
            return WorkerReported(problem, None if of_status else failure)
    return WorkerEnded(failure, process_limit.cause_of(outcome.stderr_tail))


def parse_document(outcome: Outcome, keys: set[str]) -> tuple[dict[str, Any] | None, str | None]:
    """What a worker printed, or what is wrong with it."""
    if (failed := worker_problem(outcome)) is not None:
        return None, text(failed)
    try:
        document: dict[str, Any] = json.loads(outcome.stdout)
    except ValueError:
        return None, "printed no JSON document"
    if not isinstance(document, dict) or not document.keys() >= keys:
        return None, "printed another document than was asked for"
    return document, None


def _other_modes(document: Mapping[str, Any], options: Options) -> str | None:
    """What is wrong where a worker did not train as ``options`` say; None where it did, or has no modes."""
    seen = document.get("modes") or {}  # a user's own command has none
    for name, wanted in options.modes.items():
        if seen.get(name, wanted) != wanted:
            return f"was to train with {name.replace('_', ' ')}: {wanted}, and saw that it was: {seen[name]}"
    return None


def other_ranks(document: Mapping[str, Any], wanted: int, options: Options, instances: int = 1) -> str | None:
    """What is wrong where others than ``wanted`` ranks have trained together, or by another backend; or others than so
    many ``instances`` at once. Else None."""
    if (at_once := len(document.get("instances", [document]))) != instances:
        return f"was to train {instances} at once, and has the evidence of {at_once}"
    seen = len(document.get("ranks", [document]))
    if seen != wanted:
        return f"was to train on {wanted} ranks, and has the evidence of {seen}"
    backend = document.get("backend", options.exchange)
    return None if backend == options.exchange else f"was to exchange by {options.exchange}, and did so by {backend}"


def other_loader(document: Mapping[str, Any], workload: str) -> str | None:
    """What is wrong where DataLoader's workers were started or kept otherwise than the workload's name says; else None.

    A workload without such settings has nothing to be held against.
    """
    settings = loader_epochs.settings_of(workload)
    if settings is None:
        return None
    seen = document.get("loader") or {}
    if (start := seen.get("start")) != settings.start:
        found = f"they were started by {start}" if start else "how they were started is not known"
        return f"was to load by workers that {settings.start} starts, and {found}"
    if (persistent := seen.get("persistent")) is None:
        return "saw no end of an epoch, and so not whether DataLoader's workers stay; give more --steps"
    if persistent != settings.persistent:
        wanted, found = ("stay", "they were others") if settings.persistent else ("end", "they stayed")
        return f"was to load by workers that {wanted} when an epoch ends, and {found} in the next"
    return None


def diverged(document: Mapping[str, Any], options: Options) -> str | None:
    """What is wrong where a loss is no number; None where all are, or there are none.

    Steps go on without learning anything then, and whoever is faster at that has won nothing.
    """
    losses = document.get("losses") or ()
    at = next((at for at, loss in enumerate(losses) if loss is not None and not math.isfinite(loss)), None)
    if at is None:
        return None
    is_of_a_step = len(losses) == len(document["step_s"])
    step = len(document.get("warmup_step_s", ())) + at + 1
    which = f"the loss of step {step}" if is_of_a_step else f"loss {at + 1} of {len(losses)}"
    if _is_of_a_command(document):
        fix = "lower its learning rate or, where it happens under one profile alone, leave this out"
    else:
        mode = f" or the mode ({options.text()})" if options.text() else ""
        fix = f"the profile{mode} changes the numerics; measure without it"
    return f"diverged: {which} is {losses[at]}, so that its speed says nothing; {fix}"


def _other_number_of_losses(document: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong where a user's command has printed more or fewer losses than before; None where it did not.

    Those of the kit's workloads have as many as there are steps.
    """
    here = len(document["losses"])
    there = next((len(event["losses"]) for event in earlier), here)
    if here == there or not _is_of_a_command(document):
        return None
    found = f"{here} loss{'' if here == 1 else 'es'}"
    return (
        f"saw {found}, and earlier samples had {there}; let each run print equally many, "
        "in a line for each step and not in a bar that is drawn now and then"
    )


def _is_of_a_command(document: Mapping[str, Any]) -> bool:
    """Whether it is a sample of a user's own command."""
    return "command" in document["digests"]


def parse_sample(
    outcome: Outcome, earlier: Sequence[Mapping[str, Any]], options: Options, keys: set[str] = SAMPLE_KEYS
) -> tuple[dict[str, Any] | None, str | None]:
    """A sample, or what is wrong: there is none, or other code, data, weights or modes than were to be measured.

    ``earlier`` are the samples of the same workload, whose digests it must have; ``options`` say in which modes it was
    to train, and ``keys`` are what it must have. Its usage then has ``engine_s`` too, the CPU time in seconds of what
    the engine ran beside the worker, where that is known.
    """
    document, problem = parse_document(outcome, keys)
    if document is None:
        return None, problem
    for event in earlier:
        for name, digest in document["digests"].items():
            # a file that the command of a user's own writes to is not among the digests of all its samples
            if event["digests"].get(name, digest) != digest:
                return None, f"its {name.replace('_', ' ')} differs from that of earlier samples ({digest[:12]}…)"
        versions = [one.get("evidence", {}).get("torch", {}).get("version") for one in (event, document)]
        if None not in versions and versions[0] != versions[1]:
            return None, f"its torch is {versions[1]}, and that of earlier samples was {versions[0]}; start a new run"
    wrong = _other_modes(document, options) or diverged(document, options)
    if wrong := wrong or _other_number_of_losses(document, earlier):
        return None, wrong
    if outcome.cpu_s is not None and "cpu_s" in document:
        document["usage"]["engine_s"] = max(0.0, outcome.cpu_s - document["cpu_s"])
    return document, None


def unlike_parts(plan: Plan, arm: Arm, sample: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong where a rank, and the one process that is to have a rank's part of the CPUs, have unlike many.

    ``sample`` is a new one of ``arm``, ``earlier`` are those before it; None where nothing is wrong, or not known yet.
    """
    part = {one.name for one in plan.single_processes if one.cpu_shares != 1}
    several = {one.name for one in plan.distributed}
    others = several if arm.name in part else part if arm.name in several else set()
    for event in earlier:
        if event["arm"] in others and (there := _cpus(event)) != (here := _cpus(sample)):
            return (
                f"had {here} CPUs where one of {event['arm']} had {there}; efficiency is worked out from processes "
                "that have equally many"
            )
    return None


def _cpus(sample: Mapping[str, Any]) -> int:
    """How many CPUs one process of it was given."""
    return len(sample["ranks"][0]["cpus"]) if "ranks" in sample else int(sample["usage"]["worker_cpus"])
