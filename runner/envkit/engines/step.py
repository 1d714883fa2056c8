"""Start a worker on the first nodes of the Slurm job that the runner is in, as one step of ``srun``."""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from envkit.common.errors import InputError
from envkit.engines import reply, start
from envkit.engines.base import SOURCES, Outcome
from envkit.engines.container import CODE, INTERPRETER
from envkit.engines.messages import NodeLost, NoNodesToTrainOn
from envkit.engines.process import run_process
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Refused
from envkit.engines.slurm.messages import (
    EngineNotForNodes,
    NodesUntold,
    NoFreePort,
    NotOnANode,
    SlurmMissing,
    SrunRefused,
    TooFewNodes,
)
from envkit.worker.request import WorkerRequest

# What starts workers on nodes of a cluster; the other engines need a daemon or rights that its users don't have.
ENGINES = ("local", "apptainer", "enroot")
# Below the ports that the kernel hands out by itself (ip(7), ip_local_port_range).
FIRST_PORT, PORTS = 20000, 6000
# How lines begin in which Slurm says something of the ends of ranks.
SLURMS_WORDS = ("srun: ", "slurmstepd: ", "pyxis: ")
# Slurm's plugin for containers takes options from variables that begin so.
PYXIS = "PYXIS_"


def require_engine(engine: str) -> None:
    """Raise InputError for an engine that starts no workers on the nodes of a cluster."""
    if engine not in ENGINES:
        raise InputError(EngineNotForNodes(engine, ENGINES))


def require(nodes: int) -> None:
    """Raise InputError if this is no job of so many nodes."""
    if "SLURM_JOB_NODELIST" not in os.environ:
        raise InputError(NoNodesToTrainOn(nodes))
    here = _names()
    if os.environ.get("SLURMD_NODENAME") not in here:
        raise InputError(NotOnANode(nodes))
    if nodes > len(here):
        raise InputError(TooFewNodes(nodes, len(here)))


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    nodes: int,
    timeout_s: float,
    request: WorkerRequest | None = None,
    inside: str = "",
    container: Sequence[str] = (),
    made: Mapping[str, str] | None = None,
) -> Outcome:
    """Run ``argv``, which reads ``request``, on the first nodes of the job. When one ends badly Slurm ends the others.

    ``inside`` comes before the names of variables that are to be seen in a container. The output of all ranks is one
    text.

    ``container`` are options of srun by which it starts the command in a container, whose variables ``environment`` is
    added to; ``made`` are the step's own, by which the container is made.
    """
    number = os.environ.get("SLURM_JOB_ID", "")
    names = _names()[:nodes]
    host = _address(names)
    port = _free_port(int(number) if number.isdigit() else 0)
    step_document = {
        "argv": [*argv], "request": request.line() if request else "", "environment": {**environment},
        "inside": inside, "nodes": names, "host": host, "port": port, "within": bool(container),
    }  # fmt: skip
    outcome = _srun(json.dumps(step_document), names, timeout_s, container, made or {})
    if outcome.failure is None:
        return outcome
    # the lines in which nodes say what rank they lost: of a rank's end that of others is a consequence
    printed = "".join(sorted(outcome.stdout.splitlines(keepends=True), key=_order))
    stderr = _without_slurms_words(f"{outcome.stderr_tail}{_log(printed)}")
    for name, state in client.out_of_service(names, client.DEAD).items():
        # what ranks on other nodes say of it is that a connection was closed
        return replace(outcome, stdout="", stderr_tail=stderr, failure=NodeLost(name, state))
    return replace(outcome, stdout=printed, stderr_tail=stderr)


def _srun(
    step_line: str, names: Sequence[str], timeout_s: float, container: Sequence[str], made: Mapping[str, str]
) -> Outcome:
    """Run one task on each of these nodes. Each becomes what is ``step_line``, by ``start``."""
    caller = {name: value for name, value in os.environ.items() if not name.startswith(PYXIS)}
    step = {start.GIVEN: step_line, **made}
    # a container is to have nothing else of the runner's, and has no other name for this code and Python
    export = f"--export={','.join(step)}" if container else "--export=ALL"
    # by its path: by its name as a module it would import all engines
    become = [INTERPRETER, f"{CODE}/engines/start.py"] if container else [sys.executable, str(start.__file__)]
    command = [
        "srun", f"--nodes={len(names)}", f"--ntasks={len(names)}", "--ntasks-per-node=1",
        f"--nodelist={','.join(names)}", "--cpu-bind=none",
        "--overlap",  # the runner's own step has all that the job has
        "--input=none", "--kill-on-bad-exit=1", "--no-kill=off", export, "--wait=0", *container, *become,
    ]  # fmt: skip
    try:
        return run_process(command, {**caller, **step}, SOURCES, timeout_s)
    except FileNotFoundError:
        raise InputError(SlurmMissing("srun")) from None
    except OSError as error:  # one variable holds all of the worker's, and must be below 128 KiB
        raise InputError(SrunRefused(error.strerror or str(error))) from None


def _names() -> tuple[str, ...]:
    """Return the nodes of the job, the runner's own first. Raise InputError if Slurm does not tell them."""
    try:
        hosts = client.hosts(os.environ["SLURM_JOB_NODELIST"])
    except Refused as error:
        raise InputError(NodesUntold(error.said)) from None
    this_node = os.environ.get("SLURMD_NODENAME")
    return tuple(sorted(hosts, key=lambda name: name != this_node))


def _log(printed: str) -> str:
    """Return the tail of the failed rank's log, which the first line has."""
    first = reply.parse(printed.partition("\n")[0])
    return "" if first is None else first.log


def _without_slurms_words(printed: str) -> str:
    """Return what ranks printed, without what Slurm says of their ends if there is more."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(SLURMS_WORDS)) or printed


def _order(line: str) -> tuple[float, ...]:
    answer = reply.parse(line)
    return (math.inf,) if answer is None else answer.order


@functools.cache
def _address(names: tuple[str, ...]) -> str:
    """This node's address, as the next one of the job knows it. Asked once: Slurm may not answer at some later time."""
    for name in names[1:]:
        try:
            return start.towards(client.address(name))
        except (OSError, LookupError, Refused):
            continue
    return platform.node()


def _free_port(job: int) -> int:
    """Return a port that nobody listens on here: jobs that share a node begin to look at different ones."""
    for port in range(FIRST_PORT + job % PORTS, FIRST_PORT + 2 * PORTS):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise InputError(NoFreePort())
