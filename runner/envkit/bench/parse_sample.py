"""Read the sample that a worker printed, or find what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from envkit.bench.arms import Arm
from envkit.bench.messages import WorkerEnded, WorkerReported
from envkit.bench.problem_messages import (
    INSTANCES,
    RANKS,
    TO_EXCHANGE,
    TO_START,
    CommandDiverged,
    Diverged,
    LossAmong,
    LossOfStep,
    NoDocument,
    NoEpochEnd,
    OtherDigest,
    OtherDocument,
    OtherMode,
    OtherNumberOfLosses,
    OtherTorch,
    UnknownStart,
    UnlikeCpus,
    UsedOther,
    WorkersReplaced,
    WorkersStayed,
)
from envkit.bench.problems import restored
from envkit.bench.record import Event
from envkit.bench.run import INITIAL_WEIGHTS
from envkit.bench.study import Study
from envkit.checks import process_limit
from envkit.engines import reply
from envkit.engines.base import Outcome
from envkit.engines.measurement import TrainingDocument
from envkit.engines.messages import ExitStatus, Killed
from envkit.messages import Message
from envkit.worker.modes import Options
from envkit.worker.workloads import loader_epochs

# What a worker's document must have to be a sample, or a reading of the reference kernel.
SAMPLE_KEYS = {"seconds", "step_s", "losses", "digests", "usage", "evidence"}
KERNEL_KEYS = {"seconds", "digest"}
# The digest of a workload's code, and of how it is trained.
CODE = "code"


def comparable(event: Event, study: Study, arm: Arm) -> TrainingDocument:
    """Return a recorded sample without what may differ in a sample of ``arm``.

    Another engine or image may have another PyTorch. Another image may make other initial weights. The digest of the
    code tells sizes of batches apart.
    """
    return cast(TrainingDocument, _comparable(event, study, arm))


def _comparable(event: Event, study: Study, arm: Arm) -> Event:
    measured = study.arm(event["arm"])
    if study.options_of(measured) != study.options_of(arm):
        event = _without(event, CODE)
    if measured.target == arm.target:
        return event
    event = {**event, "evidence": {**event["evidence"], "torch": {}}}
    if measured.image == arm.image:
        return event
    return _without(event, INITIAL_WEIGHTS)


def _without(event: Event, digest: str) -> Event:
    return {**event, "digests": {name: value for name, value in event["digests"].items() if name != digest}}


def worker_problem(outcome: Outcome) -> Message | None:
    """Return why a worker failed, or None if it did not.

    The worker's own report, in the document that it printed, takes the place of an exit status. The engine's knowledge
    beyond that status, such as a memory limit that was reached, is beside the report.
    """
    failure = outcome.failure
    if failure is None:
        return None
    for line, answer in reply.of_lines(outcome.stdout):
        if "problem" in answer.document:
            problem = restored(answer.problem)
            news = failure if _is_news(failure, problem) else None
            return WorkerReported(problem, news, process_limit.cause_of(line))
    return WorkerEnded(failure, process_limit.cause_of(outcome.stderr_tail))


def _is_news(failure: Message, problem: Message) -> bool:
    """Return whether the engine knows more than an exit status that its worker's ``problem`` does not say."""
    if isinstance(failure, Killed) and failure.limit is not None:
        return True
    if isinstance(failure, ExitStatus | Killed):
        return failure.memory is not None and getattr(problem, "memory", None) is None
    return True


def parse_document(outcome: Outcome, keys: set[str]) -> tuple[TrainingDocument | None, Message | None]:
    """Return the document that a worker printed, which must have ``keys``, or what is wrong with it."""
    if (failed := worker_problem(outcome)) is not None:
        return None, failed
    answer = reply.parse(outcome.stdout)
    if answer is None:
        return None, NoDocument()
    if answer.document.keys() >= keys:
        return cast(TrainingDocument, answer.document), None
    return None, OtherDocument()


def _other_modes(document: TrainingDocument, options: Options) -> Message | None:
    """Return in which mode a worker trained that ``options`` do not say; None if in none, or if it has no modes."""
    modes = document.get("modes") or {}  # a user's own command has none
    for name, wanted in options.modes.items():
        if modes.get(name, wanted) != wanted:
            return OtherMode(name.replace("_", " "), wanted, modes[name])
    return None


def other_ranks(document: TrainingDocument, wanted: int, options: Options, instances: int = 1) -> Message | None:
    """Return what is wrong unless ``wanted`` ranks trained together, by the backend of ``options``, else None.

    ``instances`` is how many trainings must have run at once.
    """
    if (at_once := len(document.get("instances", [document]))) != instances:
        return UsedOther(str(instances), INSTANCES, str(at_once))
    ranks = len(document.get("ranks", [document]))
    if ranks != wanted:
        return UsedOther(str(wanted), RANKS, str(ranks))
    backend = document.get("backend", options.exchange)
    return None if backend == options.exchange else UsedOther(options.exchange, TO_EXCHANGE, backend)


def other_loader(document: TrainingDocument, workload: str) -> Message | None:
    """Return what is wrong unless DataLoader's workers were started and kept as the workload's name says, else None.

    The names of most workloads do not say it: the result is None then.
    """
    settings = loader_epochs.settings_of(workload)
    if settings is None:
        return None
    loader = document.get("loader") or {}
    if (start := loader.get("start")) != settings.start:
        return UsedOther(settings.start, TO_START, start) if start else UnknownStart(settings.start)
    if (persistent := loader.get("persistent")) is None:
        return NoEpochEnd()
    if persistent != settings.persistent:
        return WorkersReplaced() if settings.persistent else WorkersStayed()
    return None


def diverged(document: TrainingDocument, options: Options) -> Message | None:
    """Return the index of the first loss that is not finite; None if all are finite.

    Steps go on without learning anything then, so that their speed says nothing.
    """
    losses = document.get("losses") or ()
    at = next((at for at, loss in enumerate(losses) if loss is not None and not math.isfinite(loss)), None)
    if at is None:
        return None
    loss_text = str(losses[at])
    step = len(document.get("warmup_step_s", ())) + at + 1
    if not _is_of_a_command(document):
        return Diverged(step, loss_text, options.text() or None)
    is_of_a_step = len(losses) == len(document["step_s"])
    return CommandDiverged(LossOfStep(step) if is_of_a_step else LossAmong(at + 1, len(losses)), loss_text)


def _other_number_of_losses(document: TrainingDocument, earlier: Sequence[TrainingDocument]) -> Message | None:
    """Return what is wrong if a user's command printed more or fewer losses than before, else None.

    The kit's workloads have as many losses as steps.
    """
    here = len(document["losses"])
    there = next((len(event["losses"]) for event in earlier), here)
    return None if here == there or not _is_of_a_command(document) else OtherNumberOfLosses(here, there)


def _is_of_a_command(document: TrainingDocument) -> bool:
    """Return whether it is a sample of a user's own command."""
    return "command" in document["digests"]


def parse_sample(
    outcome: Outcome, earlier: Sequence[TrainingDocument], options: Options, keys: set[str] = SAMPLE_KEYS
) -> tuple[TrainingDocument | None, Message | None]:
    """Return a sample, or what is wrong: it is missing, or it has other code, data, weights or modes than it must have.

    ``earlier`` are the samples of the same workload, whose digests it must have. ``options`` give its modes, and
    ``keys`` are what it must have. Its usage then has ``engine_s`` too: the CPU time in seconds of what the engine ran
    beside the worker, if known.
    """
    document, problem = parse_document(outcome, keys)
    if document is None:
        return None, problem
    for event in earlier:
        for name, digest in document["digests"].items():
            # a file that the command of a user's own writes to is not among the digests of all its samples
            if event["digests"].get(name, digest) != digest:
                return None, OtherDigest(name.replace("_", " "), digest[:12])
        versions = [recorded.get("evidence", {}).get("torch", {}).get("version") for recorded in (event, document)]
        if None not in versions and versions[0] != versions[1]:
            return None, OtherTorch(str(versions[1]), str(versions[0]))
    unusable = _other_modes(document, options) or diverged(document, options)
    if unusable := unusable or _other_number_of_losses(document, earlier):
        return None, unusable
    if outcome.cpu_s is not None and "cpu_s" in document:
        document["usage"]["engine_s"] = max(0.0, outcome.cpu_s - document["cpu_s"])
    return document, None


def unlike_parts(
    study: Study, arm: Arm, sample: TrainingDocument, earlier: Sequence[TrainingDocument]
) -> Message | None:
    """Return what is wrong if a rank, and the one process that must have a rank's part of the CPUs, have unlike many.

    ``sample`` is a new one of ``arm``, ``earlier`` are those before it. None if nothing is wrong, or not known yet.
    """
    part = {arm_of_part.name for arm_of_part in study.single_processes if arm_of_part.cpu_shares != 1}
    several = {arm_of_ranks.name for arm_of_ranks in study.distributed}
    others = several if arm.name in part else part if arm.name in several else set()
    for event in earlier:
        if event["arm"] in others and (there := _cpus(event)) != (here := _cpus(sample)):
            return UnlikeCpus(here, event["arm"], there)
    return None


def _cpus(sample: TrainingDocument) -> int:
    """How many CPUs one process of it was given."""
    return len(sample["ranks"][0]["cpus"]) if "ranks" in sample else int(sample["usage"]["worker_cpus"])
