"""From the options of ``runner submit`` to what its nodes measure, with all that can be told wrong before a job is."""

from __future__ import annotations

import argparse
import math
import os
import secrets
import sys
from collections.abc import Collection, Sequence
from decimal import Decimal
from pathlib import Path

from runner import engine_options, engines, profile
from runner.commands import bench, measuring, measuring_options, own_command, ranks, training
from runner.engines import apptainer
from runner.engines.base import PROJECT
from runner.engines.local import LocalEngine
from runner.errors import InputError
from runner.fleet.alike import MIN_SAMPLES
from runner.slurm import client, table
from runner.slurm.client import Partition, Refused
from runner.slurm.settings import Settings
from runner.suggestion import suggestion
from runner.worker.workloads import DEFAULT, GENERATED, get

# What starts workers on nodes of a cluster; the other engines need a daemon or rights that its users don't have.
OPTIONS = {"local": LocalEngine.options, "apptainer": apptainer.ApptainerEngine.options}
# Options of the job, of which `runner bench` on a node knows nothing.
OF_THE_JOB = ("nodes", "nodelist", "partition", "time", "sbatch", "start_within", "dry_run", "detach")
# Options of the report on a fleet.
OF_THE_FLEET = ("judged", "html", "prometheus")
NOT_PASSED_ON = (
    "command", "profile", "engine", "resume", "output", "json", "own", "data", "usual_budget",
    *OF_THE_JOB, *OF_THE_FLEET,
)  # fmt: skip
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
        raise InputError(f"{arguments.command} needs a PROFILE; there are: {', '.join(profile.names())}")
    engine = arguments.engine or "local"
    require_engine(engine)
    engines.require_options(engine_options.given(arguments), OPTIONS[engine], [engine])
    arms = bench.against_baseline(arguments.profile, engine)
    # the tuned profile is another one on every node
    arms = [arm if arm.profile == profile.TUNED else ranks.arm_of(arm, profile.load(arm.profile)) for arm in arms]
    own = own_command.own_command(arguments)
    measuring_options.require(arguments)
    if arguments.command == "fleet":
        _require_samples(arguments)
    how = training.options(arguments)
    if own is None:
        training.require([_workload(arguments)], how)
    given = [sbatch_option(text) for text in arguments.sbatch or ()]
    partition = arguments.partition or os.environ.get("SBATCH_PARTITION")
    fleet = arguments.command == "fleet"
    nodelist = list(dict.fromkeys(hosts(arguments.nodelist))) if arguments.nodelist else []
    if fleet:
        nodelist = nodelist or _all_nodes(partition)
        nodes = len(nodelist)
    else:
        nodes = _of_job(arguments.nodes, nodelist)
    joint = not fleet and nodes > 1 and arguments.nproc is not None
    if arguments.nproc is not None:
        together = nodes if joint else 1
        for arm in arms:
            if arm.ranks:
                raise InputError(f"profile '{arm.profile}' has {arm.ranks} ranks of its own; leave --nproc out")
        ranks.arms(arguments, arms, together)  # which also sets the budget that they usually take
    trained = None if own else _workload(arguments)
    each, of_nodes = arguments.nproc or 1, nodes if joint else 1
    ranks.require_shares(arms, trained, how, each, of_nodes)
    numbers = [(arm.ranks or each) * of_nodes for arm in arms]
    ranks.require_exchange(arguments, [trained] if trained else [], how, max(numbers), min(numbers))
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
        nodes=nodes,
        nodelist=tuple(nodelist),
        partition=partition,
        minutes=time_limit(arguments, own is not None),
        options=tuple(given),
        fleet=fleet,
        joint=joint,
        ranks=each,
    )


def require_engine(engine: str) -> None:
    """Raise InputError for an engine that starts no workers on the nodes of a cluster."""
    if engine not in OPTIONS:
        raise InputError(
            f"--engine {engine}: on nodes workers are started by {' or '.join(OPTIONS)}; choose one of these"
        )


def _require_samples(arguments: argparse.Namespace) -> None:
    """Raise InputError for what gives a node too few samples to be judged by."""
    few = f"a node is judged by {MIN_SAMPLES} samples at least"
    if arguments.full:
        raise InputError(f"--full trains once, and {few}; leave it out")
    if arguments.blocks is not None and arguments.blocks < MIN_SAMPLES:
        raise InputError(f"--blocks {arguments.blocks}: {few}; give {MIN_SAMPLES} or more")


def _of_job(nodes: int | None, named: Sequence[str]) -> int:
    """How many nodes a job takes."""
    if nodes is not None and nodes < len(named):
        raise InputError(f"--nodes {nodes} is less than the {len(named)} that --nodelist names; leave --nodes out")
    return nodes or len(named) or 1


def _all_nodes(partition: str | None) -> list[str]:
    """All nodes of the partition that are in service; what is said of the others is printed."""
    return in_service([*dict.fromkeys(host for one in _chosen(partition) for host in hosts(one.hosts))])[0]


def in_service(names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Those of ``names`` that can start a job now; and of the others what Slurm says, which is printed.

    Raises InputError where there are only others.
    """
    out = client.out_of_service(names)
    alike = {said: [name for name in names if out.get(name) == said] for said in sorted({*out.values()})}
    lines = [f"{table.named(those)}: Slurm says {said}" for said, those in alike.items()]
    left = [name for name in names if name not in out]
    if not left:
        said = "; ".join(lines) or "there are none"
        raise InputError(f"none of the nodes is in service ({said}); wait, or name others")
    for line in lines:
        print(f"runner: left out: {line}", file=sys.stderr)
    return left, out


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def bench_options(arguments: argparse.Namespace, sif: str | None, own: bool) -> list[str]:
    """Options of ``runner bench`` in words that mean the same on every node."""
    named = {**vars(arguments), **engine_options.given(arguments).to_json(), **({"sif": sif} if sif else {})}
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
    budget_s = float(arguments.budget or arguments.usual_budget or measuring.BUDGET_S)
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


def require_on_cluster(wanted: Settings, names: Collection[str]) -> None:
    """Raise InputError for a partition, or nodes of these ``names``, that the cluster does not have."""
    chosen = _chosen(wanted.partition)
    most = max(chosen, key=lambda one: one.nodes)
    if wanted.nodes > most.nodes and not wanted.fleet:  # whose nodes are in jobs of their own
        raise InputError(
            f"--nodes {wanted.nodes}: the partition {most.name} has {most.nodes} ({most.hosts}); "
            "ask for fewer, or name another with --partition"
        )
    there = {host for one in chosen for host in hosts(one.hosts)} if names else set()
    for name in names:
        if name not in there:
            raise InputError(
                f"--nodelist: the partition {most.name} has no node {name}; it has {most.hosts}; name others"
            )


def _chosen(named: str | None) -> list[Partition]:
    """The partitions of that name, or the cluster's default. Raises InputError."""
    known = {one.name: one for one in client.partitions()}
    there = f"there are: {', '.join(known) or 'none'}"
    if named is None:
        default = [one for one in known.values() if one.default]
        if not default:
            raise InputError(f"this cluster has no default partition; name one with --partition; {there}")
        return default
    for name in named.split(","):
        if name not in known:
            raise InputError(f"--partition {name}: no such partition{suggestion(name, known)}; {there}")
    return [known[name] for name in named.split(",")]


def hosts(short: str) -> list[str]:
    """The nodes of a list that may be in Slurm's short form."""
    if "[" not in short:
        return [name for name in short.split(",") if name]
    try:
        return client.hosts(short)
    except Refused as error:
        raise InputError(f"--nodelist {short}: {error}; write for example node1,node2 or node[1-2]") from None
