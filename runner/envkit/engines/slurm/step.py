"""What ``envkit.engines.step`` does in a job of Slurm's: workers are started by ``srun``, on the job's nodes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from envkit.common.errors import InputError
from envkit.engines.base import SOURCES, Outcome
from envkit.engines.container import CODE, INTERPRETER
from envkit.engines.process import run_process
from envkit.engines.slurm import client
from envkit.engines.slurm.client import Refused
from envkit.engines.start import GIVEN, START

PROGRAM = "srun"
# How lines begin in which Slurm says something of the ends of ranks.
ITS_WORDS = ("srun: ", "slurmstepd: ", "pyxis: ")
# Slurm's plugin for containers takes options from variables that begin so.
PYXIS = "PYXIS_"


def address(name: str) -> str:
    """Where a node is reached. Raises Refused."""
    return client.address(name)


def starts_containers() -> bool:
    """Whether Slurm has Pyxis."""
    return client.starts_containers()


def given() -> dict[str, bool]:
    """Nothing: Slurm keeps others away from the nodes of a job."""
    return {}


def run(
    given: str, names: Sequence[str], timeout_s: float, container: Sequence[str], made: Mapping[str, str]
) -> Outcome:
    """One task on each of these nodes, which becomes what is ``given``. When one ends badly Slurm ends the others."""
    caller = {name: value for name, value in os.environ.items() if not name.startswith(PYXIS)}
    step = {GIVEN: given, **made}
    # a container is to have nothing else of the runner's, and has no other name for this code and Python
    export = f"--export={','.join(step)}" if container else "--export=ALL"
    become = [INTERPRETER, f"{CODE}/engines/start.py"] if container else [sys.executable, "-m", START]
    srun = [
        PROGRAM, f"--nodes={len(names)}", f"--ntasks={len(names)}", "--ntasks-per-node=1",
        f"--nodelist={','.join(names)}", "--cpu-bind=none",
        "--overlap",  # the runner's own step has all that the job has
        "--input=none", "--kill-on-bad-exit=1", "--no-kill=off", export, "--wait=0", *container, *become,
    ]  # fmt: skip
    try:
        return run_process(srun, {**caller, **step}, SOURCES, timeout_s)
    except FileNotFoundError:
        raise InputError("srun is not found, which comes with Slurm; load its module (module load slurm)") from None


def lost(names: Sequence[str], printed: str) -> str | None:
    """A node that has died, and what Slurm says of it."""
    for name, said in client.out_of_service(names, client.DEAD).items():
        return f"{name}: Slurm says that the node is {said}"
    return None


def require(nodes: int) -> None:
    """Raise InputError where this is no job of so many nodes."""
    if "SLURM_JOB_NODELIST" not in os.environ:
        raise InputError(
            f"--nodes {nodes}: trains on nodes of a Slurm job, and this is none; submit one: envkit submit PROFILE "
            f"--nodes {nodes} --nproc N; or name hosts that ssh reaches: envkit bench PROFILE --hosts A,B --nproc N"
        )
    here = names()
    if os.environ.get("SLURMD_NODENAME") not in here:
        raise InputError(
            f"--nodes {nodes}: the runner must be on a node of the job; start it by srun or sbatch, or: envkit submit "
            f"PROFILE --nodes {nodes} --nproc N"
        )
    if nodes > len(here):
        raise InputError(f"--nodes {nodes}: this job has {len(here)}; ask for fewer, or for a larger job")


def names() -> tuple[str, ...]:
    """The nodes of the job, the runner's own first."""
    try:
        found = client.hosts(os.environ["SLURM_JOB_NODELIST"])
    except Refused as error:
        raise InputError(f"SLURM_JOB_NODELIST: scontrol says: {error}") from None
    own = os.environ.get("SLURMD_NODENAME")
    return tuple(sorted(found, key=lambda name: name != own))
