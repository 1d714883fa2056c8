"""From the options of ``envkit submit`` to what its nodes measure, with all that can be told wrong before a job is."""

from __future__ import annotations

import argparse
import math
import os
import secrets
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from envkit import engines
from envkit.bench import requirements, resuming
from envkit.bench.record import Event
from envkit.bench.requirements import arm_of
from envkit.bench.study import Study
from envkit.cli import engine_options, measuring, measuring_options, rank_options
from envkit.cli.measuring_messages import NoVerdictOfNode
from envkit.cli.measuring_options import against_baseline
from envkit.cli.messages import NeedsProfile
from envkit.cli.submission_messages import (
    BadNodelist,
    BadSbatchOption,
    FewBlocksOnFleet,
    FewerThanNamed,
    FullOnFleet,
    LeftOutNodes,
    NoDefaultPartition,
    NoneInService,
    OutOfService,
    OwnRanks,
    SetByScript,
    TooManyNodes,
    UnknownNode,
    UnknownPartition,
)
from envkit.cluster import type_verdict
from envkit.cluster.fleet.comparability import MIN_SAMPLES
from envkit.cluster.slurm import table
from envkit.cluster.slurm.settings import OF_THE_QUEUE, Settings
from envkit.common.errors import InputError
from envkit.common.suggestion import nearest
from envkit.engines import ENGINES, apptainer, enroot, step
from envkit.engines.base import IMAGE_FILES, SOURCES
from envkit.engines.local import LocalEngine
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Partition, Refused
from envkit.profiles import profile
from envkit.rendering import text
from envkit.worker.workloads import GENERATED, get

# Options of the engines that start workers on nodes.
OPTIONS = {
    "local": LocalEngine.options, "apptainer": apptainer.ApptainerEngine.options, "enroot": enroot.EnrootEngine.options,
}  # fmt: skip
# Options of sbatch that have an option of the kit's own, and that option.
OF_THE_JOB = {"nodes": "--nodes", "nodelist": "--nodelist", "partition": "--partition", "time": "--time-limit"}
# sbatch's options that the batch script sets itself, or that would make another kind of job.
SET_BY_SCRIPT = (
    "array", "chdir", "clusters", "cpus-per-task", "dependency", "error", "exclude", "exclusive", "export", "hold",
    "input", "job-name", "mem", "nodelist", "nodes", "no-kill", "no-requeue", "ntasks", "ntasks-per-node", "open-mode",
    "output", "partition", "requeue", "signal", "test-only", "time", "wait", "wrap",
)  # fmt: skip
# A job takes longer than the budget, which counts workers only: each node looks into its image first.
SLACK, BEGIN_AND_END_S = 1.25, 600.0


def settings(arguments: argparse.Namespace) -> Settings:
    """Raises InputError for what no node could measure. Slurm is asked for names of nodes only, where it must be."""
    if not arguments.profile:
        raise InputError(NeedsProfile(arguments.command))
    fleet = arguments.command == "fleet"
    engine = engine_on_nodes(arguments)
    if fleet:
        _require_samples(arguments)
    nodelist = named_nodes(arguments)
    nodes = 1 if fleet else of_job(arguments.nodes, nodelist)
    joint = nodes > 1 and arguments.nproc is not None
    study = _study(arguments, engine, nodes if joint else 1)
    if fleet:
        nodelist = nodelist or _all_nodes(partition(arguments))
        nodes = len(nodelist)
    return replace(job(arguments, study, nodes, nodelist), fleet=fleet, joint=joint)


def job(arguments: argparse.Namespace, study: Study, nodes: int, nodelist: Sequence[str]) -> Settings:
    """The settings of a job in which each of so many nodes has a run of its own."""
    image, kind = study.engine_options.image_file, ENGINES[study.arms[0].engine].image_option
    return Settings(
        id=secrets.token_hex(4),
        study=study,
        python=sys.executable,
        project=str(SOURCES),
        digest=apptainer.digest(Path(image), kind) if image else None,
        nodes=nodes,
        nodelist=tuple(nodelist),
        partition=partition(arguments),
        minutes=_time_limit(arguments, study),
        options=tuple(sbatch_option(word) for word in arguments.sbatch or ()),
    )


def again(
    arguments: argparse.Namespace, first: Event, earlier: Settings, make: Callable[[argparse.Namespace], Settings]
) -> Settings:
    """Return the settings that the command line makes here. Raise InputError if the record has others.

    ``first`` is its first event. The record adds the number by which its jobs are found. For a fleet without
    --nodelist it adds the nodes, too: those in service when it began.
    """
    if not measuring.beside_resume(arguments):  # a submission's whole command has options, if only --nodes
        command_line = f"envkit {arguments.command} {'OPTIONS' if earlier.by == 'tune' else 'PROFILE OPTIONS'}"
        raise resuming.no_seal(arguments.resume, first, command_line)
    if not arguments.profile and earlier.by in ("submit", "fleet"):
        raise measuring.lacks_profile(arguments, NeedsProfile(arguments.command), "submit")
    made = replace(make(arguments), id=earlier.id)
    if made.fleet and not arguments.nodelist:
        made = replace(made, nodes=earlier.nodes, nodelist=earlier.nodelist)
    earlier = replace(earlier, **{name: getattr(made, name) for name in OF_THE_QUEUE})
    resuming.require_same(arguments.resume, first, resuming.differences(earlier.to_json(), made.to_json()))
    return made


def engine_on_nodes(arguments: argparse.Namespace) -> str:
    """Return what starts workers on nodes. Raises InputError for an engine, or options of one, that can't there."""
    engine = arguments.engine or "local"
    step.require_engine(engine)
    engines.require_options(engine_options.from_arguments(arguments), OPTIONS[engine], [engine])
    return engine


def named_nodes(arguments: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(hosts(arguments.nodelist))) if arguments.nodelist else []


def partition(arguments: argparse.Namespace) -> str | None:
    """Return the one that was named; None for the cluster's own."""
    return arguments.partition or os.environ.get("SBATCH_PARTITION")


def _study(arguments: argparse.Namespace, engine: str, nodes: int) -> Study:
    """The settings of each node, or of all ``nodes`` together: files in it have names that mean the same on every
    node.
    """
    profiles = anywhere_named(arguments.profile)
    title = "+".join(Path(name).stem for name in profiles)
    arms = against_baseline(profiles, engine)
    # the tuned profile is another one on every node
    loaded = [arm if arm.profile == profile.TUNED else arm_of(arm, profile.load(arm.profile)) for arm in arms]
    if arguments.nproc is not None:
        for arm in loaded:
            if arm.ranks:
                raise InputError(OwnRanks(arm.profile, arm.ranks))
        arms = rank_options.arms(arguments, arms, nodes)
        loaded += arms[len(loaded) :]
    study = measuring_options.study(
        arguments, title, loaded, rank_options.budget_s(arguments, arms, nodes if arguments.nproc else 1)
    )
    study = replace(study, nodes=nodes)
    requirements.require(study)
    most = max(arm.ranks or study.ranks for arm in loaded) * nodes
    rank_options.require_backend(arguments.backend, most)
    return anywhere(arguments, replace(study, arms=tuple(arms)))


def anywhere_named(profiles: Sequence[str]) -> list[str]:
    """Names of profiles as they are, and those of files and of the project so that they mean the same on every node."""
    return [profile.anywhere(name) for name in profiles]


def anywhere(arguments: argparse.Namespace, study: Study) -> Study:
    """The same with names of image and data that mean the same on every node."""
    options = study.engine_options
    kind = ENGINES[study.arms[0].engine].image_option
    if kind in IMAGE_FILES:
        options = replace(options, **{kind: str(Path(options.image_file or IMAGE_FILES[kind]).absolute())})
    return replace(study, engine_options=options, data=_data(arguments, study))


def _require_samples(arguments: argparse.Namespace) -> None:
    """Raise InputError for what gives a node too few samples to be judged by."""
    if arguments.full:
        raise InputError(FullOnFleet(MIN_SAMPLES))
    if arguments.blocks is not None and arguments.blocks < MIN_SAMPLES:
        raise InputError(FewBlocksOnFleet(arguments.blocks, MIN_SAMPLES))


def say_of_few_blocks(settings: Settings) -> None:
    """Say, before anything is measured, that so few blocks can give no verdict: of a run, or of all nodes together."""
    study, least = settings.study, type_verdict.MIN_BLOCKS
    if settings.runs == 1 and not settings.profiles:
        study = study.completed(study.data or "")
        if study.lacks_blocks:
            measuring.say_of_few_blocks(study.stopping.blocks, study.fewest_blocks, study.sharing)
    elif 0 < study.stopping.blocks < least:
        print(text(NoVerdictOfNode(study.stopping.blocks, least)), file=sys.stderr)


def of_job(nodes: int | None, named: Sequence[str]) -> int:
    """Return how many nodes a job takes. Raise InputError if --nodelist names more than ``nodes``."""
    if nodes is not None and nodes < len(named):
        raise InputError(FewerThanNamed(nodes, len(named)))
    return nodes or len(named) or 1


def _all_nodes(partition: str | None) -> list[str]:
    """All nodes of the partition that are in service; what is said of the others is printed."""
    return in_service([*dict.fromkeys(host for chosen in _chosen(partition) for host in hosts(chosen.hosts))])[0]


def in_service(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return those of ``names`` that can start a job now; and what Slurm says of the others, which is printed.

    Raise InputError if there are only others.
    """
    out = client.out_of_service(names)
    alike = {reason: [name for name in names if out.get(name) == reason] for reason in sorted({*out.values()})}
    left_out = tuple(OutOfService(table.named(unavailable), reason) for reason, unavailable in alike.items())
    available = [name for name in names if name not in out]
    if not available:
        raise InputError(NoneInService(left_out))
    for group in left_out:
        print(f"envkit: {text(LeftOutNodes(group))}", file=sys.stderr)
    return available, out


def _data(arguments: argparse.Namespace, study: Study) -> str | None:
    """Return where the data are. Look here: nodes often reach no network and would fall back on synthetic data.

    None for a workload that makes its own data, and for a user's command.
    """
    if study.user_command:
        return None
    if arguments.dry_run and not get(study.workload).generated:
        return study.data or "DATA"
    location = requirements.data(study.data, study.own_workloads).location
    return None if location == GENERATED else location


def _time_limit(arguments: argparse.Namespace, study: Study) -> int | None:
    """In minutes, as Slurm counts. None, for the partition's own, where nobody knows how long it takes."""
    if arguments.time_limit is not None:
        return in_minutes(arguments.time_limit)
    if study.epochs or study.stopping.blocks or study.user_command:
        return None
    return in_minutes(study.stopping.budget_s * SLACK + BEGIN_AND_END_S)


def in_minutes(seconds: float) -> int:
    """As Slurm counts."""
    return math.ceil(seconds / 60)


def sbatch_option(word: str) -> str:
    """Return ``word``, such as ``account=physics``. Raise InputError for what the script sets, and for no option."""
    name = word.partition("=")[0]
    if not name.replace("-", "").isalnum() or name.startswith("-") or not word.isprintable():
        raise InputError(BadSbatchOption(word))
    if name in SET_BY_SCRIPT:
        raise InputError(SetByScript(word, name, OF_THE_JOB.get(name)))
    return word


def require_on_cluster(wanted: Settings, names: Collection[str]) -> None:
    """Raise InputError for a partition, or nodes of these ``names``, that the cluster does not have."""
    chosen = _chosen(wanted.partition)
    most = max(chosen, key=lambda partition: partition.nodes)
    if wanted.nodes > most.nodes and not wanted.fleet:  # whose nodes are in jobs of their own
        raise InputError(TooManyNodes(wanted.nodes, most.name, most.nodes, most.hosts))
    there = {host for partition in chosen for host in hosts(partition.hosts)} if names else set()
    for name in names:
        if name not in there:
            raise InputError(UnknownNode(most.name, name, most.hosts))


def default_partition() -> str:
    """Return the name of the cluster's own partition. Raise InputError if it has none."""
    return _chosen(None)[0].name


def _chosen(named: str | None) -> list[Partition]:
    """Return the partitions of that name, or the cluster's default. Raise InputError if it is missing."""
    by_name = {candidate.name: candidate for candidate in client.partitions()}
    if named is None:
        default = [candidate for candidate in by_name.values() if candidate.default]
        if not default:
            raise InputError(NoDefaultPartition(tuple(by_name)))
        return default
    for name in named.split(","):
        if name not in by_name:
            raise InputError(UnknownPartition(name, tuple(by_name), nearest(name, by_name)))
    return [by_name[name] for name in named.split(",")]


def hosts(short: str) -> list[str]:
    """Return the nodes of a list that may be in Slurm's short form. Raise InputError for no list."""
    if "[" not in short:
        return [name for name in short.split(",") if name]
    try:
        return client.hosts(short)
    except Refused as error:
        raise InputError(BadNodelist(short, error.said)) from None
