"""``--nproc``: the arms of a training on several ranks, and what can't be trained so."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner import shares
from runner.arguments import count
from runner.commands import own_command
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm
from runner.profile import Profile
from runner.tuning.space import Space
from runner.worker.distributed import BACKENDS, GLOO, NCCL
from runner.worker.modes import CUDA, Options
from runner.worker.workloads import DEFAULT, find

# For each arm, where none is given: eleven samples or so, one of them on a part of the CPUs, with their ranks' starts.
BUDGET_EACH_S = 120.0
BUDGET = (
    f"with --nproc {BUDGET_EACH_S:g}s for each profile, the baseline too, and each process that they are held against"
)
ONE_PROCESS = "1 process"


def add_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup, then: str) -> None:
    """``then`` says what is measured of them."""
    parser.add_argument("--nproc", metavar="N", type=count,
                        help="train on N ranks at once (torchrun, DDP), each on its part of the cores, with a thread "
                        "for each of these where a profile, or the baseline, says nothing of threads; "
                        f"{then}; on --device cuda, each on a GPU of its own")  # fmt: skip
    parser.add_argument("--backend", metavar="NAME", type=_backend,
                        help=f"by what ranks exchange gradients: {' or '.join(BACKENDS)} (default: {NCCL} between "
                        f"GPUs, {GLOO} between CPUs)")  # fmt: skip


def _backend(text: str) -> str:
    if text not in BACKENDS:
        raise argparse.ArgumentTypeError(f"'{text}' exchanges nothing; give {' or '.join(BACKENDS)}")
    return text


def together(arguments: argparse.Namespace) -> int:
    """How many ranks train together; 1 for a command that has no such option."""
    return int(getattr(arguments, "nproc", None) or 1)


def require(arguments: argparse.Namespace, nodes: int = 1) -> None:
    """Raise InputError for what several ranks can't be asked of."""
    if (ranks := together(arguments)) * nodes == 1:
        return
    option = f"--nodes {nodes}" if arguments.nproc is None else f"--nproc {ranks}"
    if own_command.is_given(arguments):
        raise InputError(f"{option} means nothing to a command of your own; leave it out, and start torchrun by it")
    if getattr(arguments, "full", False):
        raise InputError(f"{option} means nothing with --full, which trains once each; leave one of them out")
    if arguments.workload == own_command.EVERY:
        known = ", ".join(shares.shared())
        raise InputError(f"{option}: not all workloads can share their batches; name one of: {known}")


def add_nodes_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", metavar="N", type=count,
                        help="in a Slurm job: train on so many of its nodes together; see runner submit")  # fmt: skip


def require_nodes(nodes: int, engine: str) -> None:
    """Raise InputError where a training on so many nodes can't be started."""
    if nodes == 1:
        return
    from runner.commands import submitted
    from runner.slurm import step

    submitted.require_engine(engine)
    step.require(nodes)


def arms(arguments: argparse.Namespace, given: Sequence[Arm], nodes: int = 1) -> list[Arm]:
    """``given`` and, where they are for several ranks, the baseline in one process: on all CPUs, and on one rank's.

    ``nodes`` train together, with so many ranks each; one process is on one of them.

    Raises InputError for what ``--nproc`` means nothing to.
    """
    require(arguments, nodes)
    if (ranks := together(arguments)) * nodes == 1:
        return [*given]
    alone = not exchanges(arguments.workload or DEFAULT)  # one process exchanges nothing
    found = [*given]
    if alone:
        one = Arm(ONE_PROCESS, REFERENCE_PROFILE, given[0].engine, ranks=1, of=1)
        found += [one] if ranks == 1 else [one, replace(one, name=f"{ONE_PROCESS} on 1/{ranks}", of=ranks)]
    arguments.usual_budget = BUDGET_EACH_S * len(found)
    return found


def exchanges(name: str) -> bool:
    """Whether a workload is nothing but what ranks exchange; a user's own, in a file, is not."""
    found = find(name)
    return found is not None and found.exchange


def arm_of(arm: Arm, loaded: Profile) -> Arm:
    """The arm with its profile's own name, and on as many ranks as that says."""
    return replace(arm, profile=loaded.name, ranks=arm.ranks or (loaded.ranks if loaded.ranks > 1 else 0))


def require_shares(arms: Iterable[Arm], trained: str | None, how: Options, ranks: int, nodes: int = 1) -> None:
    """Raise InputError where an arm is on several ranks that can't share the batches of what it trains.

    ``trained`` is the workload of arms that have none of their own, None for a command of the user's; ``ranks`` is how
    many there are on each of ``nodes`` where an arm does not say it.
    """
    for arm in arms:
        if nodes > 1 and arm.ranks > 1:
            own = f"profile '{arm.profile}' has {arm.ranks} ranks of its own"
            raise InputError(f"{own}, on one node; leave --nodes out")
        if trained is not None:
            given = f"--nproc {ranks}" if nodes == 1 else f"--nodes {nodes} --nproc {ranks}"
            what = f"profile '{arm.profile}', ranks: {arm.ranks}" if arm.ranks else given
            require_batch(arm.workload or trained, how, *((arm.ranks, 1) if arm.ranks else (ranks, nodes)), what)
        elif arm.ranks > 1:
            raise InputError(
                f"profile '{arm.profile}' has {arm.ranks} ranks, which a command of your own has to start by itself; "
                "leave one of them out"
            )


def require_searched(space: Space, trained: str | None, how: Options, ranks: int) -> int:
    """On how many ranks a candidate may train. ``trained`` is as in ``require_shares``.

    Raises InputError where ``ranks`` are asked for and a search chooses them too, or where they can't be had.
    """
    searched = [part.ranks for knob in space.knobs for part in knob.labels.values()]
    if ranks > 1 and max(searched, default=0) > 1:
        raise InputError(f"--nproc {ranks}: the space '{space.name}' chooses the number of ranks; leave --nproc out")
    numbers = searched if trained is None else [0]  # of the kit's workloads the search leaves out what can't be
    require_shares([Arm(space.name, space.name, "", ranks=number) for number in numbers], trained, how, ranks)
    return max(ranks, *searched)


def require_batch(name: str, how: Options, ranks: int, nodes: int, what: str) -> None:
    """Raise InputError where ``ranks`` on each of ``nodes`` can't share the batches of the workload ``name``.

    ``what`` asks for them.
    """
    if found := shares.unshared(name, how, ranks, nodes):
        raise InputError(f"{what}: {'; '.join(found)}")


def require_room(seen: Mapping[str, Mapping[str, Any]], ranks: int) -> None:
    """Raise InputError where the cores are too few, as they were ``seen`` under each engine."""
    for engine, about in seen.items():
        if found := shares.crowded(ranks, about["inspection"]["facts"]["physical_cores"], f"engine {engine}"):
            raise InputError(found)


def require_exchange(
    arguments: argparse.Namespace, workloads: Iterable[str], how: Options, ranks: int, fewest: int | None = None
) -> None:
    """Raise InputError where ``ranks`` can't exchange as they are to, or one process is to exchange something.

    ``fewest`` is how many an arm has, where arms have different numbers.
    """
    backend = getattr(arguments, "backend", None)
    if backend and ranks == 1:
        raise InputError(f"--backend {backend} means nothing to one process; add --nproc, or leave it out")
    if how.exchange == NCCL and how.device != CUDA:
        raise InputError(f"--backend {NCCL}: NCCL exchanges between GPUs alone; add --device {CUDA}, or leave it out")
    if (fewest or ranks) == 1 and any(map(exchanges, workloads)):
        raise InputError("--workload all-reduce: one process has nobody to exchange with; give runner bench --nproc N")


def require_gpus(seen: Mapping[str, Mapping[str, Any]], ranks: int, how: Options) -> None:
    """Raise InputError where so many ranks have too few GPUs, as these were ``seen`` in what they run in."""
    for place, about in seen.items():
        usable = about["inspection"]["facts"].get("gpus", 0)
        if how.device == CUDA and ranks > usable:
            there, most = ("1 is", "one process") if usable == 1 else (f"{usable} are", f"{usable} ranks or fewer")
            raise InputError(
                f"--device {CUDA}: {ranks} ranks take a GPU each, and {there} usable ({place}); train on {most}"
            )
