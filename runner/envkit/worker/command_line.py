"""Do what a request says (``envkit.worker.request``), and print one JSON document: the worker's reply."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.worker import request
from envkit.worker.errors import WorkerError
from envkit.worker.messages import KernelTooLarge
from envkit.worker.request import (
    Inspect,
    Instance,
    Instances,
    Operators,
    Phases,
    Rank,
    Ranks,
    ReferenceKernel,
    RunCommand,
    Train,
    WorkerRequest,
)

if TYPE_CHECKING:
    from envkit.worker.request import Work

# The exit status for a request that is not valid.
REFUSED = 2


def own_stdout() -> int:
    """Keep stdout for the document alone and send what anything else prints there to stderr.

    Returns the file descriptor to write the document to.
    """
    document = os.dup(1)
    os.dup2(2, 1)
    return document


def main() -> int:
    source = sys.argv[1] if len(sys.argv) > 1 else request.STDIN
    if "ENVKIT_RANK" in os.environ:  # the launcher's, and gone once this process has become the rank
        from envkit.worker.ranks import become

        become()
    try:
        worker_request = request.read(source)
    except WorkerError as error:
        print(json.dumps({"problem": error.message.to_json()}))
        return REFUSED
    if source == request.STDIN and not worker_request.waits:
        from envkit.worker.measure.turn import own_stdin

        os.close(own_stdin())
    return _do(worker_request)


def _do(worker_request: WorkerRequest) -> int:
    """Do the work, print the reply, and return the exit status."""
    work = worker_request.work
    if worker_request.parent is not None:
        from envkit.worker.child import die_with

        # kill -9 of the runner must not leave a worker behind that spoils the next run's timing; one that has a child
        # has to end that first
        if not die_with(worker_request.parent, signal.SIGTERM if isinstance(work, RunCommand) else signal.SIGKILL):
            return 1  # it was killed before this process asked for the signal
    if isinstance(work, Ranks):
        from envkit.worker.ranks import launch

        return launch(work)
    if isinstance(work, Instances):
        from envkit.worker import instances

        return instances.launch(work)
    document = own_stdout()
    cpus = None
    if worker_request.waits:
        cpus = os.sched_getaffinity(0)  # before torch is imported, whose OpenMP runtime may bind this thread to fewer
        if not _has_its_turn(document):
            return 1
    try:
        result = _result(work, cpus)
    except WorkerError as error:
        result = {"problem": error.message.to_json()}
    if result is not None:  # else rank 0 has it, or it was left where others are met
        with os.fdopen(document, "w") as out:
            json.dump(result, out)
            out.write("\n")
    status = 1 if result is not None and "problem" in result else 0
    if isinstance(work, (Train, Rank, Instance, Operators, Phases)):
        # Python's own end takes half a second after torch was imported; and with several ranks torch aborts now and
        # then, as it destroys what threads of gloo's still use
        sys.stderr.flush()
        os._exit(status)
    return status


def _has_its_turn(document: int) -> bool:
    """Import what takes long, which others may do at the same time, and wait; False where the runner has gone."""
    from envkit.worker.measure.turn import own_stdin, wait

    turn = own_stdin()  # before anything is imported that could read there
    from envkit.worker.measure import train  # noqa: F401 - whose evidence looks at the CPUs before torch is imported

    with contextlib.suppress(ImportError):  # which the training says more of
        import torch  # noqa: F401

    return wait(turn, document)


def _require_memory() -> None:
    """Raise WorkerError if the reference kernel could be killed for the memory that it takes on all CPUs."""
    from envkit.worker.cgroup import memory_limit
    from envkit.worker.host import cpu_facts
    from envkit.worker.measure.reference_kernel import BUFFER_BYTES

    limit, takes = memory_limit(), 2 * BUFFER_BYTES * int(cpu_facts()["usable_cpus"])
    if limit is not None and takes > limit / 2:
        raise WorkerError(KernelTooLarge(takes, limit))


def _result(work: Work, cpus: Collection[int] | None) -> Mapping[str, object] | None:
    """The document to print; None in a rank or an instance that leaves that to another.

    ``cpus`` are those that the worker may run on, where torch was imported since it was started.
    """
    if isinstance(work, Inspect):
        from envkit.worker.image import inspect

        return inspect(work.commands, work.contents, work.gpus)
    if isinstance(work, ReferenceKernel):
        from envkit.worker.measure.reference_kernel import time_reference_kernel

        _require_memory()
        return time_reference_kernel()
    if isinstance(work, RunCommand):
        from envkit.worker.user_command.command import attempt

        return attempt(work)
    assert not isinstance(work, (Ranks, Instances)), "these are launched"
    training = work if isinstance(work, Train) else work.training
    if training.options.compile:
        from envkit.worker import compiler

        compiler.require_own_cache()
    if isinstance(work, (Operators, Phases)):
        return _broken_down(work)
    return _trained(work, training, cpus)


def _trained(
    work: Train | Rank | Instance, training: Train, cpus: Collection[int] | None
) -> Mapping[str, object] | None:
    """The sample of a training; the rest is as for ``_result``."""
    from envkit.worker.measure.quality_target import parse
    from envkit.worker.measure.train import train

    full = training.full
    take_sample = partial(
        train,
        training.workload,
        request.location(training.data),
        training.warmup_steps,
        training.steps,
        full.epochs if full else 0,
        training.options,
        training.tests,
        cpus=cpus,
        profiled=training.profiles_ranks,
        seconds=training.least_s,
        until=parse(full.until) if full and full.until else None,
    )
    if isinstance(work, Instance):
        from envkit.worker.instances import as_instance

        as_instance(take_sample, work.number, Path(work.folder))
        return None
    if isinstance(work, Train):
        return take_sample()
    from envkit.worker.distributed import as_rank

    return as_rank(take_sample, training.options.exchange, training.options.device)


def _broken_down(work: Operators | Phases) -> dict[str, object]:
    """Return where a step's time goes."""
    training = work.training
    length = (training.warmup_steps, training.steps)
    arguments = (training.workload, request.location(training.data), *length, training.options)
    if isinstance(work, Phases):
        from envkit.worker.measure.phases import phases

        return phases(*arguments)
    from envkit.worker.measure.operators import operators

    return operators(*arguments, forward=work.forward)
