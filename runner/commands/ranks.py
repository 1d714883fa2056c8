"""``--nproc``: the arms of a training on several ranks, and what can't be trained so."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.arguments import count
from runner.commands import own_command
from runner.errors import InputError
from runner.plan import REFERENCE_PROFILE, Arm
from runner.profile import Profile
from runner.worker.modes import Options
from runner.worker.pipeline import MICRO_BATCHES
from runner.worker.workloads import WORKLOADS, get

# For each arm, where none is given: eleven samples or so, one of them on a part of the CPUs, with their ranks' starts.
BUDGET_EACH_S = 120.0
ONE_PROCESS = "1 process"


def add_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup, then: str) -> None:
    """``then`` says what is measured of them."""
    parser.add_argument("--nproc", metavar="N", type=count,
                        help="train on N ranks at once (torchrun, DDP), each on its part of the cores, with a thread "
                        "for each of these where a profile, or the baseline, says nothing of threads; "
                        f"{then}")  # fmt: skip


def together(arguments: argparse.Namespace) -> int:
    """How many ranks train together; 1 for a command that has no such option."""
    return int(getattr(arguments, "nproc", None) or 1)


def require(arguments: argparse.Namespace) -> None:
    """Raise InputError for what several ranks can't be asked of."""
    if (ranks := together(arguments)) == 1:
        return
    option = f"--nproc {ranks}"
    if own_command.is_given(arguments):
        raise InputError(f"{option} means nothing to a command of your own; leave it out, and start torchrun by it")
    if getattr(arguments, "full", False):
        raise InputError(f"{option} means nothing with --full, which trains once each; leave one of them out")
    if arguments.workload == own_command.EVERY:
        raise InputError(f"{option}: not all workloads can share their batches; name one of: {', '.join(_shared())}")


def arms(arguments: argparse.Namespace, given: Sequence[Arm]) -> list[Arm]:
    """``given`` and, where they are for several ranks, the baseline in one process: on all CPUs, and on one rank's.

    Raises InputError for what ``--nproc`` means nothing to.
    """
    require(arguments)
    if (ranks := together(arguments)) == 1:
        return [*given]
    if arguments.budget is None:
        arguments.budget = BUDGET_EACH_S * (len(given) + 2)
    one = Arm(ONE_PROCESS, REFERENCE_PROFILE, given[0].engine, ranks=1, of=1)
    return [*given, one, replace(one, name=f"{ONE_PROCESS} on 1/{ranks}", of=ranks)]


def _shared() -> list[str]:
    return [name for name, workload in WORKLOADS.items() if workload.batch]


def arm_of(arm: Arm, loaded: Profile) -> Arm:
    """The arm with its profile's own name, and on as many ranks as that says."""
    return replace(arm, profile=loaded.name, ranks=arm.ranks or (loaded.ranks if loaded.ranks > 1 else 0))


def require_shares(arms: Iterable[Arm], trained: str | None, how: Options, ranks: int) -> None:
    """Raise InputError where an arm is on several ranks that can't share the batches of what it trains.

    ``trained`` is the workload of arms that have none of their own, None for a command of the user's; ``ranks`` is how
    many there are where an arm does not say it.
    """
    for arm in arms:
        if trained is not None:
            require_batch(arm.workload or trained, how, arm.ranks or ranks)
        elif arm.ranks > 1:
            raise InputError(
                f"profile '{arm.profile}' has {arm.ranks} ranks, which a command of your own has to start by itself; "
                "leave one of them out"
            )


def require_same(name: str) -> None:
    """Raise InputError for a workload of which several ranks learn something else than one process."""
    if get(name).ranks_tolerance:
        raise InputError(f"--workload {name}: several ranks learn something else; give --numerics any to try them")


def require_batch(name: str, how: Options, ranks: int) -> None:
    """Raise InputError where ``ranks`` can't share the batches of the workload ``name``."""
    if ranks == 1:
        return
    workload = get(name)
    if not workload.batch:
        raise InputError(
            f"--nproc {ranks} means nothing to {name}, whose batches ranks can't share; leave it out, or name one of: "
            f"{', '.join(_shared())}"
        )
    if ranks % workload.stages:
        raise InputError(
            f"--nproc {ranks}: {name} has {workload.stages} stages, each in ranks of its own; "
            f"give a multiple of {workload.stages}"
        )
    whole, pieces = workload.batch * how.scale, _pieces(name, ranks)
    if whole % pieces:
        shares = (one for one in range(workload.stages, whole + 1, workload.stages) if one > 1)
        fitting = [str(one) for one in shares if whole % _pieces(name, one) == 0]
        raise InputError(
            f"--nproc {ranks}: a batch of {name} has {whole} {'images' if workload.images else 'sentences'}, "
            f"which {ranks} ranks can't share evenly; give one of: {', '.join(fitting)}, or another --scale"
        )


def _pieces(name: str, ranks: int) -> int:
    """Into how many equal parts a batch is cut."""
    stages = get(name).stages
    return ranks if stages == 1 else ranks // stages * MICRO_BATCHES


def require_room(seen: Mapping[str, Mapping[str, Any]], ranks: int) -> None:
    """Raise InputError where the CPUs are too few, as they were ``seen`` under each engine."""
    for engine, about in seen.items():
        usable = about["inspection"]["facts"]["usable_cpus"]
        if ranks > max(1, usable):
            mend = f"give --nproc {usable} or less" if usable > 1 else "leave it out"
            raise InputError(
                f"--nproc {ranks}: only {usable} CPU{'s are' if usable > 1 else ' is'} usable (engine {engine}), and "
                f"each rank takes one of its own; {mend}"
            )
