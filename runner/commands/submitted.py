"""From the options of ``runner submit`` to what its nodes measure, with all that can be told wrong before a job is."""

from __future__ import annotations

import argparse
import math
import os
import secrets
import sys
from decimal import Decimal
from pathlib import Path

from runner import engines, profile
from runner.commands import bench, measuring, own_command, training
from runner.engines import apptainer
from runner.engines.base import PROJECT
from runner.engines.local import LocalEngine
from runner.errors import InputError
from runner.slurm import client
from runner.slurm.client import Partition, Refused
from runner.slurm.settings import Settings
from runner.worker.workloads import DEFAULT, GENERATED, get

# What starts workers on nodes of a cluster; the other engines need a daemon or rights that its users don't have.
OPTIONS = {"local": LocalEngine.options, "apptainer": apptainer.ApptainerEngine.options}
# Options of the job, of which `runner bench` on a node knows nothing.
OF_THE_JOB = ("nodes", "nodelist", "partition", "time", "sbatch", "start_within", "dry_run", "detach")
NOT_PASSED_ON = ("command", "profile", "engine", "resume", "output", "json", "own", "data", *OF_THE_JOB)
# sbatch's options that the batch script sets itself, or that would make another kind of job.
SET_BY_SCRIPT = (
    "array", "chdir", "cpus-per-task", "dependency", "error", "exclude", "exclusive", "export", "input", "job-name",
    "mem", "nodelist", "nodes", "no-kill", "no-requeue", "ntasks", "ntasks-per-node", "open-mode", "output",
    "partition", "requeue", "signal", "time", "wait", "wrap",
)  # fmt: skip
# A job takes longer than the budget, which counts workers only: each node looks into its image first.
SLACK, BEGIN_AND_END_S = 1.25, 600.0


def settings(arguments: argparse.Namespace) -> Settings:
    """Raises InputError for what no node could measure. Slurm is not asked."""
    if not arguments.profile:
        raise InputError(f"submit needs a PROFILE; there are: {', '.join(profile.names())}")
    engine = arguments.engine or "local"
    if engine not in OPTIONS:
        raise InputError(
            f"--engine {engine}: on nodes workers are started by {' or '.join(OPTIONS)}; choose one of these"
        )
    engines.require_options(measuring.engine_options(arguments), OPTIONS[engine], [engine])
    for arm in bench.against_baseline(arguments.profile, engine):
        if arm.profile != profile.TUNED:  # which is another one on every node
            profile.load(arm.profile)
    own = own_command.own_command(arguments)
    measuring.require_lengths(arguments)
    if own is None:
        training.require([_workload(arguments)], training.options(arguments))
    given = [sbatch_option(text) for text in arguments.sbatch or ()]
    nodelist = _hosts(arguments.nodelist) if arguments.nodelist else []
    if arguments.nodes is not None and arguments.nodes < len(nodelist):
        named = f"the {len(nodelist)} that --nodelist names"
        raise InputError(f"--nodes {arguments.nodes} is less than {named}; leave --nodes out")
    sif = str(Path(arguments.sif or apptainer.SIF).absolute()) if engine == "apptainer" else None
    return Settings(
        id=secrets.token_hex(4),
        title="+".join(Path(name).stem for name in arguments.profile),
        profiles=tuple(str(Path(name).absolute()) if _is_file(name) else name for name in arguments.profile),
        engine=engine,
        bench=tuple(bench_options(arguments, sif, own is not None)),
        python=sys.executable,
        project=str(PROJECT),
        folder=own[1].folder if own else None,
        sif=sif,
        digest=apptainer.digest(Path(sif)) if sif else None,
        force=arguments.force,
        nodes=arguments.nodes or len(nodelist) or 1,
        nodelist=tuple(nodelist),
        partition=arguments.partition or os.environ.get("SBATCH_PARTITION"),
        minutes=time_limit(arguments, own is not None),
        options=tuple(given),
    )


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def bench_options(arguments: argparse.Namespace, sif: str | None, own: bool) -> list[str]:
    """Options of ``runner bench`` in words that mean the same on every node."""
    named = {**vars(arguments), **measuring.engine_options(arguments).to_json(), **({"sif": sif} if sif else {})}
    if named["workload"] and _is_file(named["workload"]):
        named["workload"] = str(Path(named["workload"]).absolute())
    words = []
    for name, value in named.items():
        if name not in NOT_PASSED_ON and value not in (None, False, []):
            flag = "--command" if name == "own_command" else f"--{name.replace('_', '-')}"
            values = value if isinstance(value, list) else [value]
            words += [flag] if value is True else [f"{flag}={_text(one)}" for one in values]
    return words if own else [*words, *_data(arguments)]


def _text(value: object) -> str:
    """Numbers as the options read them, which know no exponents."""
    return format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value)


def _workload(arguments: argparse.Namespace) -> str:
    return str(arguments.workload or DEFAULT)


def _data(arguments: argparse.Namespace) -> list[str]:
    """Where the data are: looked for here, as nodes often reach no network and would fall back on synthetic ones.

    Nothing for a workload that makes its own.
    """
    workload = _workload(arguments)
    if arguments.dry_run and not get(workload).generated:
        return [f"--data={arguments.data or 'DATA'}"]
    location = training.data(arguments.data, [workload]).location
    return [] if location == GENERATED else [f"--data={location}"]


def time_limit(arguments: argparse.Namespace, own: bool = False) -> int | None:
    """In minutes, as Slurm counts. None, for the partition's own, where nobody knows how long it takes."""
    if arguments.time is not None:
        return math.ceil(float(arguments.time) / 60)
    if arguments.full or arguments.blocks or own:
        return None
    budget_s = float(arguments.budget or measuring.BUDGET_S)
    return math.ceil((budget_s * SLACK + BEGIN_AND_END_S) / 60)


def sbatch_option(text: str) -> str:
    """``account=physics`` as it was given. Raises InputError for what the script sets itself, and for no option."""
    name = text.partition("=")[0]
    if not name.replace("-", "").isalnum() or name.startswith("-") or not text.isprintable():
        wrong = "must be a long option of sbatch without its dashes, as account=physics"
        raise InputError(f"--sbatch {text!r}: {wrong}")
    if name in SET_BY_SCRIPT:
        mend = f"give --{name}" if name in OF_THE_JOB else "leave it out"
        raise InputError(f"--sbatch {text}: the batch script sets {name} itself; {mend}")
    return text


def require_on_cluster(wanted: Settings) -> None:
    """Raise InputError for a partition or nodes that the cluster does not have."""
    known = {one.name: one for one in client.partitions()}
    chosen = _partitions(wanted.partition, known)
    most = max(chosen, key=lambda one: one.nodes)
    if wanted.nodes > most.nodes:
        raise InputError(
            f"--nodes {wanted.nodes}: the partition {most.name} has {most.nodes} ({most.hosts}); "
            "ask for fewer, or name another with --partition"
        )
    there = {host for one in chosen for host in _hosts(one.hosts)} if wanted.nodelist else set()
    for name in wanted.nodelist:
        if name not in there:
            raise InputError(
                f"--nodelist: the partition {most.name} has no node {name}; it has {most.hosts}; name others"
            )


def _partitions(named: str | None, known: dict[str, Partition]) -> list[Partition]:
    there = f"there are: {', '.join(known) or 'none'}"
    if named is None:
        default = [one for one in known.values() if one.default]
        if not default:
            raise InputError(f"this cluster has no default partition; name one with --partition; {there}")
        return default
    for name in named.split(","):
        if name not in known:
            raise InputError(f"--partition {name}: no such partition{profile.suggestion(name, known)}; {there}")
    return [known[name] for name in named.split(",")]


def _hosts(short: str) -> list[str]:
    """The nodes of a list that may be in Slurm's short form."""
    if "[" not in short:
        return [name for name in short.split(",") if name]
    try:
        return client.hosts(short)
    except Refused as error:
        raise InputError(f"--nodelist {short}: {error}; write for example node1,node2 or node[1-2]") from None
