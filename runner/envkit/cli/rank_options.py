"""Several processes: ``--nproc`` trains on ranks together, and ``--instances`` trains independent copies at once."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace

from envkit.bench import batch_split
from envkit.bench.arms import Arm
from envkit.bench.requirements import exchanges, require_shares
from envkit.bench.study import EVERY, REFERENCE_PROFILE
from envkit.cli import user_command
from envkit.cli.arguments import count, no_effect, option
from envkit.cli.measuring_messages import BudgetPerArm, NotAllShared, RanksAreSearched
from envkit.cli.messages import REASONS, HasNoEffect, OptionAlone
from envkit.cli.parser import BadValue, Parser
from envkit.cli.workload_messages import TORCHRUN, NotOfCommand
from envkit.common.errors import InputError
from envkit.common.messages import UnknownWord
from envkit.profiles import profile
from envkit.rendering import text
from envkit.tuning.space import Space
from envkit.worker.distributed import BACKENDS, GLOO, NCCL
from envkit.worker.modes import Options
from envkit.worker.workloads import DEFAULT

# For each arm, where none is given: eleven samples or so, one of them on a part of the CPUs, with their ranks' starts.
BUDGET_EACH_S = 120.0
BUDGET = text(BudgetPerArm(BUDGET_EACH_S))
ONE_PROCESS = "1 process"


GROUP = "several processes"


def add_option(parser: Parser, then: str) -> None:
    """``then`` says what is measured of them."""
    parser.set_defaults(nodes=None, weak=False, instances=None)  # which not all commands with ranks have
    group = parser.add_argument_group(GROUP, advanced=True)
    group.add_argument("--nproc", metavar="N", type=count,
                       help="train on N ranks (torchrun, DDP), each on its share of the cores, or with --device cuda "
                       f"on a GPU of its own; {then}")  # fmt: skip
    group.add_argument("--backend", metavar="NAME", type=_backend,
                       help=f"exchange gradients by {' or '.join(BACKENDS)} (default: {NCCL} between GPUs, {GLOO} "
                       "between CPUs)")  # fmt: skip


def add_weak_option(parser: Parser) -> None:
    parser.add_argument_group(GROUP, advanced=True).add_argument(
        "--weak", action="store_true",
        help="with --nproc: weak scaling, a full batch per rank (default: strong scaling, one batch for all ranks)",
    )  # fmt: skip


def _backend(name: str) -> str:
    if name not in BACKENDS:
        raise BadValue(UnknownWord("backend", name, tuple(BACKENDS)))
    return name


def require(arguments: argparse.Namespace, nodes: int = 1) -> None:
    """Raise InputError if several ranks can't train what the options name."""
    if (ranks := arguments.nproc or 1) * nodes == 1:
        return
    several = f"--nodes {nodes}" if arguments.nproc is None else f"--nproc {ranks}"
    if user_command.is_given(arguments):
        raise InputError(NotOfCommand(several, TORCHRUN))
    if arguments.full:
        raise InputError(no_effect(several, "--full"))
    if arguments.workload == EVERY:
        raise InputError(NotAllShared(several, tuple(batch_split.shared())))


def add_nodes_option(parser: Parser) -> None:
    parser.add_argument_group(GROUP, advanced=True).add_argument(
        "--nodes", metavar="N", type=count,
        help="in a Slurm job: train on N of its nodes together; see envkit submit",
    )  # fmt: skip


def add_instances_option(parser: Parser) -> None:
    parser.add_argument_group(GROUP, advanced=True).add_argument(
        "--instances", metavar="N", type=count,
        help="train N independent copies at once under each PROFILE, each on its share of the cores; compare "
        "their total throughput with one process on all cores",
    )  # fmt: skip


def with_instances(arguments: argparse.Namespace, arms: Sequence[Arm]) -> list[Arm]:
    """Return ``arms``, of one process each, and with --instances an arm of several copies for each named profile."""
    number = arguments.instances or 1
    named = [arm for arm in arms if arm.profile in arguments.profile] if number > 1 else []
    return [*arms, *(replace(arm, name=f"{number} x {arm.name}", instances=number) for arm in named)]


def require_one_image(arguments: argparse.Namespace, against: str) -> None:
    """Raise InputError if two images are compared, by the option ``against``, with several copies at once."""
    if (arguments.instances or 1) > 1:
        raise InputError(HasNoEffect(f"--instances {arguments.instances}", option(against), REASONS["two images"]))


def arms(arguments: argparse.Namespace, compared: Sequence[Arm], nodes: int = 1) -> list[Arm]:
    """``compared`` and, where they are for several ranks, the baseline in one process: on all CPUs, and on one rank's.

    In weak scaling it is on one rank's alone. ``nodes`` train together, with so many ranks each; one process is on one
    of them. Raises InputError for what ``--nproc`` means nothing to.
    """
    require(arguments, nodes)
    ranks = arguments.nproc or 1
    if ranks * nodes == 1 or exchanges(arguments.workload or DEFAULT):  # one process exchanges nothing
        return [*compared]
    single = Arm(ONE_PROCESS, REFERENCE_PROFILE, compared[0].engine, ranks=1, cpu_shares=1)
    share = replace(single, name=f"{ONE_PROCESS} on 1/{ranks}", cpu_shares=ranks)
    if ranks == 1:
        return [*compared, single]
    return [*compared, share] if arguments.weak else [*compared, single, share]


def budget_s(arguments: argparse.Namespace, arms: Sequence[Arm], nodes: int = 1) -> float | None:
    """Return the usual budget of several ranks or instances; None for one process."""
    several = (arguments.nproc or 1) * nodes > 1 or (arguments.instances or 1) > 1
    return BUDGET_EACH_S * len(arms) if several else None


def most(arguments: argparse.Namespace, arms: Iterable[Arm], nodes: int = 1) -> int:
    """The most processes that train together in an arm, by ``--nproc`` or by what its profile says."""
    return max((arguments.nproc or 1) * nodes, *(arm.ranks or profile.load(arm.profile).ranks for arm in arms))


def require_backend(backend: str | None, ranks: int) -> None:
    """Raise InputError where a backend is named and ``ranks``, the most of all arms, have nobody to exchange with."""
    if backend and ranks == 1:
        raise InputError(OptionAlone(f"--backend {backend}", "--nproc"))


def require_searched(space: Space, trained: str | None, options: Options, ranks: int) -> int:
    """Return on how many ranks a candidate may train. ``trained`` is as in ``require_shares``.

    Raise InputError where ``ranks`` are asked for and a search chooses them too, or where they can't be had.
    """
    searched = [part.ranks for parameter in space.parameters for part in parameter.levels.values()]
    if ranks > 1 and max(searched, default=0) > 1:
        raise InputError(RanksAreSearched(ranks, space.name))
    numbers = searched if trained is None else [0]  # of the kit's workloads the search leaves out what can't be
    require_shares([Arm(space.name, space.name, "", ranks=number) for number in numbers], trained, options, ranks)
    return max(ranks, *searched)
