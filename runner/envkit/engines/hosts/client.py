"""The same as ``envkit.engines.slurm.client`` for hosts that ssh reaches: a job is a script that runs on this machine.

It ends with this process, and all that it has started on hosts, too: there is nothing to be found later.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.engines.slurm.client import UNKNOWN, Job, NoAnswer

OUTPUT = "hosts-{}.out"


@dataclass
class _Running:
    process: subprocess.Popen[bytes]
    hosts: str
    cancelled: bool = False


_started: dict[str, _Running] = {}


def require() -> None:
    """Raise NoAnswer where ssh is missing."""
    if shutil.which("ssh") is None:
        raise NoAnswer("ssh is not found, by which --hosts are reached; install it (apt-get install openssh-client)")


def submit(script: Path, hosts: Sequence[str]) -> str:
    """Start the script; returns the number that was made for it."""
    number = int(time.time())
    while (output := script.parent / OUTPUT.format(number)).exists():
        number += 1
    variables = {"SLURM_JOB_ID": str(number), "SLURMD_NODENAME": platform.node()}
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        process = subprocess.Popen(
            ["bash", script], stdin=subprocess.PIPE, stdout=file, stderr=file, env={**os.environ, **variables},
            start_new_session=True,  # Ctrl-C is for the runner to act upon
        )  # fmt: skip
    _started[str(number)] = _Running(process, ",".join(hosts))
    return str(number)


def jobs(numbers: str, one_node: bool = False) -> list[Job]:
    """What becomes of these jobs; one that another process has started is UNKNOWN."""
    return [_job(number) for number in numbers.split(",")]


def _job(number: str) -> Job:
    known = _started.get(number)
    if known is None:
        return Job(number, UNKNOWN)
    status = known.process.poll()
    if status is None:
        return Job(number, "RUNNING", known.hosts)
    state = "CANCELLED" if known.cancelled else "FAILED" if status else "COMPLETED"
    return Job(number, state, known.hosts)


def find(name: str) -> str | None:
    """None: a job of an earlier process has ended with it."""
    return None


def cancel(numbers: str) -> None:
    """End jobs: without its standard input the script ends all that it has started, and then itself."""
    for number in numbers.split(","):
        known = _started[number]
        known.cancelled = known.process.poll() is None
        if known.process.stdin is not None:
            known.process.stdin.close()


def hosts(short: str) -> list[str]:
    """There is no short form of hosts' names."""
    return [name for name in short.split(",") if name]


def out_of_service(names: Collection[str]) -> dict[str, str]:
    """None: nobody knows before they are asked."""
    return {}
