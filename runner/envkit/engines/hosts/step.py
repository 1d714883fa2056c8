"""What ``envkit.engines.step`` does on hosts without a batch system: the first one starts workers on all, by ssh."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence

from envkit.common.errors import InputError
from envkit.engines.base import SOURCES, Outcome
from envkit.engines.hosts import ssh
from envkit.engines.hosts.links import UNREACHED
from envkit.engines.process import run_process
from envkit.engines.start import GIVEN, START

# The hosts of the job that the runner is in, with commas between them; the first is the runner's own.
HOSTS = "ENVKIT_HOSTS"
PROGRAM = "ssh"
ITS_WORDS: tuple[str, ...] = ()
# Until all hosts have said that they can start something.
REACH_S = 60


def names() -> tuple[str, ...]:
    """The hosts of the job, the runner's own first."""
    return tuple(os.environ[HOSTS].split(","))


def address(name: str) -> str:
    """Where ssh reaches a host. Raises OSError."""
    return ssh.address(name)


def starts_containers() -> bool:
    """No: an engine does."""
    return False


def given() -> dict[str, bool]:
    """Nobody keeps others away from these machines: a worker holds the lock of its own."""
    return {"locking": True}


def run(
    given: str, names: Sequence[str], timeout_s: float, container: Sequence[str], made: Mapping[str, str]
) -> Outcome:
    """The worker that is ``given``, on each of these hosts. When one ends badly the others are ended."""
    become = ["bash", "-c", 'cd "$1" && exec "$2" -m "$3"', "start", str(SOURCES), sys.executable, START]
    return _start(["together", _number(), ",".join(names), *become], timeout_s, {GIVEN: given, **made})


def lost(names: Sequence[str], printed: str) -> str | None:
    """A host whose link has broken, and why."""
    return next((f"{name}: {why}" for name, why in _unreached(printed).items()), None)


def require(nodes: int) -> None:
    """Raise InputError where this host, which is the first, starts nothing on one of the others."""
    own, *others = names()
    if nodes > len(others) + 1:
        raise InputError(f"--nodes {nodes}: there are {len(others) + 1} hosts; ask for fewer")
    if shutil.which("ssh") is None:
        raise InputError(f"{own}: ssh is not found, by which it starts workers on the other hosts; install it there")
    outcome = _start(["on_each", str(REACH_S), _number(), ",".join(others), "true"], 2 * REACH_S, {})
    for name, why in _unreached(outcome.stdout).items():
        raise InputError(f"from {own}, which starts the workers, {name} is not reached: {why}")


def _start(words: Sequence[str], timeout_s: float, variables: Mapping[str, str]) -> Outcome:
    """Of this package's programs one, which ends all that it has started when this process is gone."""
    module, *arguments = words
    command = [sys.executable, "-m", f"{__package__}.{module}", *arguments]
    return run_process(command, {**os.environ, **variables}, SOURCES, timeout_s, lifeline=True)


def _number() -> str:
    return os.environ.get("SLURM_JOB_ID", "0")


def _unreached(printed: str) -> dict[str, str]:
    lines = (line.split(" ", 2) for line in printed.splitlines() if line.startswith(f"{UNREACHED} "))
    return {name: why for _, name, why in lines}
