"""The worker's command line: ``inspect`` describes the machine, ``train`` measures a sample.

``reference-kernel`` times a fixed piece of work, which says how fast the machine is. ``ranks`` has several processes
train together, each of them started as ``rank``, and ``instances`` several that know nothing of each other.
``operators`` and ``phases`` show where a step's time goes, and ``command`` measures a sample of somebody's own
training.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from envkit.worker import modes
from envkit.worker.errors import WorkerError
from envkit.worker.messages import KernelTooLarge


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="python -m envkit.worker", description=__doc__)
    commands = main.add_subparsers(dest="command", required=True)
    look = commands.add_parser(
        "inspect", help="print the host facts, packages and libraries that are seen from in here"
    )
    look.add_argument("--command", action="append", default=[], help="say also where this command is", dest="look_for")
    look.add_argument("--contents", action="store_true", help="say also which packages there are, of all kinds")
    look.add_argument("--gpus", action="store_true", help="look for GPUs too")
    train = commands.add_parser("train", help="run the workload once and print what was measured and observed")
    profiled = commands.add_parser("operators", help="run the workload under PyTorch's profiler")
    apart = commands.add_parser("phases", help="run the workload and time the phases of its steps")
    for command in (train, profiled, apart):
        command.add_argument("--workload", required=True, help="name of the workload, for example cnn")
        command.add_argument("--data", required=True, metavar="DIR", help="folder of the data set, or 'synthetic'")
        command.add_argument("--warmup-steps", type=int, default=0, help="untimed steps before the timed ones")
        command.add_argument("--steps", type=int, default=0, help="timed steps")
        modes.add_arguments(command)
    profiled.add_argument("--forward", action="store_true", help="look at the operators of the forward pass alone")
    train.add_argument("--quality", action="store_true", help="test at the end what was learnt, after steps too")
    train.add_argument("--epochs", type=int, default=0, help="train this many epochs instead, and test after each")
    train.add_argument("--until", metavar="METRIC=NUMBER", help="with --epochs: end after the first that reached it")
    train.add_argument("--seconds", type=float, default=0.0, metavar="S", help="take more steps until S have passed")
    train.add_argument("--turn", action="store_true", help="import everything, then wait at stdin for a turn to train")
    train.add_argument("--ranked", action="store_true", help="be one of several ranks, as torchrun's variables say")
    train.add_argument("--unprofiled", action="store_true", help="of several ranks: leave their communication out")
    train.add_argument("--meet", nargs=2, metavar=("N", "DIR"),
                       help="train beside others, N in all; the sample goes into their folder")  # fmt: skip
    at_once = commands.add_parser("instances", help="run 'train' in several processes, each on CPUs of its own")
    at_once.add_argument("--number", type=int, required=True, metavar="N", help="how many")
    at_once.add_argument("argv", nargs="+", metavar="-- train ...", help="what each of them is to do")
    ranks = commands.add_parser("ranks", help="run 'train' on several ranks of this node, each on CPUs of its own")
    ranks.add_argument("--nproc", type=int, required=True, metavar="N", help="how many ranks")
    ranks.add_argument("--of", type=int, default=1, metavar="N", help="with one rank: on one of so many shares")
    ranks.add_argument("--nodes", type=int, default=1, metavar="N", help="how many nodes train together")
    ranks.add_argument("--rendezvous", metavar="HOST:PORT", help="where several nodes meet: the first one's address")
    ranks.add_argument("--node-rank", type=int, default=0, metavar="N", help="which of them this is, from 0")
    ranks.add_argument("argv", nargs="+", metavar="-- train ...", help="what each of them is to do")
    commands.add_parser("rank", help="what torchrun starts, for the launcher of 'ranks'")
    fixed = commands.add_parser("reference-kernel", help="time a fixed piece of work that no profile touches")
    own = _of_command(commands)
    for command in (train, profiled, apart, at_once, ranks, fixed, own):
        command.add_argument("--die-with-parent", type=int, metavar="PID", help="be killed when the parent, PID, dies")
    return main


def _of_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add what runs a user's training."""
    own = commands.add_parser(
        "command", help="run somebody's own training once and print what was measured and observed"
    )
    own.add_argument("--folder", required=True, metavar="DIR", help="where to run it")
    own.add_argument("--metric", help="which lines end a step, or hold its time (default: all of it is one step)")
    own.add_argument("--unit", default="s", help="of the metric's numbers (default: s)")
    own.add_argument("--warmup-lines", type=int, default=0, metavar="N", help="leave the first N readings out")
    own.add_argument("--loss-metric", metavar="METRIC", help="which lines hold a loss (default: none are read)")
    own.add_argument("--optimizer-steps", type=int, default=0, metavar="N", help="end after N steps of its optimizer")
    own.add_argument("--least-seconds", type=float, default=0.0, metavar="S", help="and not before S seconds of them")
    own.add_argument(
        "--first-step-within", type=float, default=0.0, metavar="S", help="give up if no step ends within S seconds"
    )
    own.add_argument("--in-place", action="store_true", help="start it in the folder, and in no copy of it")
    own.add_argument("--link", action="append", default=[], metavar="PATH", help="link to this in a copy")
    own.add_argument(
        "--watch", type=float, default=0.0, metavar="S", help="watch its optimizer for S seconds and end it"
    )
    own.add_argument("--watch-limit", type=float, default=45.0, metavar="S", help="give up after so many seconds")
    own.add_argument("argv", nargs="+", metavar="COMMAND")
    return own


def own_stdout() -> int:
    """Keep stdout for the document alone and send what anything else prints there to stderr.

    Returns the file descriptor to write the document to.
    """
    document = os.dup(1)
    os.dup2(2, 1)
    return document


def main() -> int:
    arguments = parser().parse_args()
    if arguments.command == "rank":
        from envkit.worker.ranks import become

        become()
    if getattr(arguments, "die_with_parent", None):
        from envkit.worker.child import die_with

        # kill -9 of the runner must not leave a worker behind that spoils the next run's timing; one that has a child
        # has to end that first
        how = signal.SIGTERM if arguments.command == "command" else signal.SIGKILL
        if not die_with(arguments.die_with_parent, how):
            return 1  # it was killed before we asked to be told
    if arguments.command == "ranks":
        from envkit.worker.ranks import launch

        met = (arguments.nodes, arguments.rendezvous)
        return launch(arguments.nproc, arguments.of, *met, arguments.argv, arguments.node_rank)
    if arguments.command == "instances":
        from envkit.worker import instances

        return instances.launch(arguments.number, arguments.argv)
    document = own_stdout()
    cpus = None
    if getattr(arguments, "turn", False):
        cpus = os.sched_getaffinity(0)  # before torch is imported, whose OpenMP runtime may bind this thread to fewer
        if not _has_its_turn(document):
            return 1
    try:
        result = _result(arguments, cpus)
    except WorkerError as error:
        result = {"problem": error.message.to_json()}
    if result is not None:  # else rank 0 has it, or it was left where others are met
        with os.fdopen(document, "w") as out:
            json.dump(result, out)
            out.write("\n")
    status = 1 if result is not None and "problem" in result else 0
    if arguments.command == "train":
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


def _result(arguments: argparse.Namespace, cpus: Collection[int] | None) -> dict[str, Any] | None:
    """The document to print; None in a rank or an instance that leaves that to another.

    ``cpus`` are those that the worker may run on, where torch was imported since it was started.
    """
    if arguments.command == "inspect":
        from envkit.worker.image.inspection import inspect

        return inspect(arguments.look_for, arguments.contents, arguments.gpus)
    if arguments.command == "reference-kernel":
        # that file keeps this name: a digest of its bytes says which baselines can be compared with each other
        from envkit.worker.measure.reference_kernel import yardstick as time_reference_kernel

        _require_memory()
        return time_reference_kernel()
    if getattr(arguments, "compile", False):
        from envkit.worker import compiler_cache

        compiler_cache.require_own()
    if arguments.command in ("operators", "phases"):
        return _taken_apart(arguments)
    if arguments.command == "command":
        from envkit.worker.user_command.command import attempt

        return attempt(arguments)
    return _trained(arguments, cpus)


def _trained(arguments: argparse.Namespace, cpus: Collection[int] | None) -> dict[str, Any] | None:
    """The sample of a training; the rest is as for ``_result``."""
    from envkit.worker.measure.quality_target import parse
    from envkit.worker.measure.train import train

    sample = partial(
        train,
        arguments.workload,
        arguments.data,
        arguments.warmup_steps,
        arguments.steps,
        arguments.epochs,
        modes.given(arguments),
        arguments.quality,
        cpus=cpus,
        profiled=not arguments.unprofiled,
        seconds=arguments.seconds,
        until=parse(arguments.until) if arguments.until else None,
    )
    if arguments.meet:
        from envkit.worker.instances import as_instance

        parties, folder = arguments.meet
        as_instance(sample, int(parties), Path(folder))
        return None
    if not arguments.ranked:
        return sample()
    from envkit.worker.distributed import as_rank

    how = modes.given(arguments)
    return as_rank(sample, how.exchange, how.device)


def _taken_apart(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where a step's time goes."""
    length = (arguments.warmup_steps, arguments.steps)
    what = (arguments.workload, arguments.data, *length, modes.given(arguments))
    if arguments.command == "phases":
        from envkit.worker.measure.phases import phases

        return phases(*what)
    from envkit.worker.measure.operators import operators

    return operators(*what, forward=arguments.forward)
