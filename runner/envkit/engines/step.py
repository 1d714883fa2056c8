"""Start a worker once on each node of the job that the runner is in, as one step, and wait for all of them.

``slurm.step`` does so by srun in a job of Slurm's, and ``hosts.step`` by ssh on hosts that have no batch system.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from envkit.common.errors import InputError
from envkit.engines.base import Outcome
from envkit.engines.hosts import step as by_ssh
from envkit.engines.messages import NodeLost
from envkit.engines.slurm import step as by_srun
from envkit.engines.slurm.client import Refused
from envkit.engines.start import towards

# What starts workers on nodes of a cluster; the other engines need a daemon or rights that its users don't have.
ENGINES = ("local", "apptainer", "enroot")
# Below the ports that the kernel hands out by itself (ip(7), ip_local_port_range).
FIRST_PORT, PORTS = 20000, 6000


class Job(Protocol):
    """The job that the runner is in; each module says what its own functions do."""

    @property
    def PROGRAM(self) -> str: ...

    @property
    def ITS_WORDS(self) -> tuple[str, ...]: ...

    def require(self, nodes: int) -> None: ...

    def names(self) -> tuple[str, ...]: ...

    def address(self, name: str) -> str: ...

    def starts_containers(self) -> bool: ...

    def given(self) -> dict[str, bool]: ...

    def run(
        self, given: str, names: Sequence[str], timeout_s: float, container: Sequence[str], made: Mapping[str, str]
    ) -> Outcome: ...

    def lost(self, names: Sequence[str], printed: str) -> str | None: ...


def _job() -> Job:
    return by_ssh if by_ssh.HOSTS in os.environ else by_srun


def require_engine(engine: str) -> None:
    """Raise InputError for an engine that starts no workers on the nodes of a cluster."""
    if engine not in ENGINES:
        raise InputError(
            f"--engine {engine}: on nodes workers are started by {', '.join(ENGINES[:-1])} or {ENGINES[-1]}; "
            "choose one of these"
        )


def require(nodes: int) -> None:
    """Raise InputError where this is no job of so many nodes, or the runner can't start anything on one of them."""
    _job().require(nodes)


def starts_containers() -> bool:
    """Whether what starts workers on nodes makes containers itself (``container`` of ``run``)."""
    return _job().starts_containers()


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    nodes: int,
    timeout_s: float,
    inside: str = "",
    container: Sequence[str] = (),
    made: Mapping[str, str] | None = None,
) -> Outcome:
    """``run_process`` on the first ``nodes`` nodes of the job. When one ends badly the others are ended.

    ``inside`` comes before the names of variables that are to be seen in a container. What all print is one text.

    ``container`` are options of srun by which it starts the command in a container, whose variables ``environment`` is
    added to; ``made`` are the step's own, by which the container is made.
    """
    job, number = _job(), os.environ.get("SLURM_JOB_ID", "")
    names = job.names()[:nodes]
    host = _address(names)
    port = _free_port(int(number) if number.isdigit() else 0)
    given = {
        "argv": [*argv], "environment": {**environment}, "inside": inside, "nodes": names, "host": host, "port": port,
        "within": bool(container), **job.given(),
    }  # fmt: skip
    try:
        outcome = job.run(json.dumps(given), names, timeout_s, container, made or {})
    except OSError as error:  # one variable holds all of the worker's, and must be below 128 KiB
        said = f"{job.PROGRAM} can't be started: {error.strerror}"
        raise InputError(f"{said}; leave large variables unset") from None
    if outcome.failure is None:
        return outcome
    # the lines in which nodes say what rank they lost: of a rank's end that of others is a consequence
    printed = "".join(sorted(outcome.stdout.splitlines(keepends=True), key=_order))
    said = _without(job.ITS_WORDS, f"{outcome.stderr_tail}{_log(printed)}")
    if lost := job.lost(names, printed):
        # what ranks on other nodes say of it is that a connection was closed
        return replace(outcome, stdout="", stderr_tail=said, failure=NodeLost(lost))
    return replace(outcome, stdout=printed, stderr_tail=said)


def _log(printed: str) -> str:
    """The end of what the rank has printed that the first line is about."""
    try:
        return str(json.loads(printed.partition("\n")[0]).get("log", ""))
    except (ValueError, AttributeError):
        return ""


def _without(its_words: tuple[str, ...], printed: str) -> str:
    """What ranks printed, without what the program that started them says of their ends, where there is more."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(its_words)) or printed


def _order(line: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, json.loads(line)["order"]))
    except (ValueError, KeyError, TypeError):
        return (math.inf,)


@functools.cache
def _address(names: tuple[str, ...]) -> str:
    """This node's address, as the next one of the job knows it. Asked once: Slurm may not answer at some later time."""
    job = _job()
    for name in names[1:]:
        try:
            return towards(job.address(name))
        except (OSError, Refused):
            continue
    return platform.node()


def _free_port(job: int) -> int:
    """A port that nobody listens on here: jobs that share a node begin to look at different ones."""
    for port in range(FIRST_PORT + job % PORTS, FIRST_PORT + 2 * PORTS):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise InputError("no port is free on this node, at which ranks could meet")
