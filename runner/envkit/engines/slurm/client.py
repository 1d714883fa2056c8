"""Slurm's own commands and what they answer; nothing else here starts them, but for ``srun`` in ``step.py``.

Plain sbatch, and not submitit: that pickles a Python function, starts it through a script that it keeps to itself, and
learns of states from sacct alone. What runs on a node here is a command line, the batch script is to be read by people
before it is submitted, and a cluster without accounting has no sacct.

Requests were tried with Slurm 22.05. Formats: https://slurm.schedmd.com/squeue.html and sinfo.html
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.common.errors import InputError
from envkit.common.messages import About
from envkit.engines.slurm.messages import (
    NO_REASON,
    NO_RESPONSE,
    NOTHING_PRINTED,
    REASONS,
    CantSubmit,
    NoCluster,
    NoController,
    NoMunge,
    NotCancelled,
    SlurmMissing,
    SlurmSilent,
)
from envkit.messages import MessageError, Printed

TIMEOUT_S = 120.0
# Of these variables Slurm's commands take options, which would change what is asked for. What a job is charged to may
# come from them; a variable of sbatch's otherwise outdoes the script (https://slurm.schedmd.com/sbatch.html). Those of
# another job, in whose shell this is, would go into the new one, whose srun takes options from them: its tasks would
# have so many CPUs, or so much memory, as the tasks of that one (https://slurm.schedmd.com/srun.html).
# Pyxis takes those of its containers from variables too, and a job's own srun would be in one.
OPTIONS_IN_VARIABLES = ("SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_", "SACCT_", "SLURM_", "SRUN_", "SLURMD_", "PYXIS_")
TAKEN_FROM_VARIABLES = (
    "SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_CONSTRAINT", "SBATCH_WCKEY",
    "SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT",  # where the cluster is, and who asks
)  # fmt: skip
ENDED = (
    "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
    "REVOKED", "UNKNOWN",
)  # fmt: skip
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
UNKNOWN = "UNKNOWN"
# How sinfo's words for the states of nodes begin: that run nothing; and that start nothing.
DEAD = ("down", "unk", "no_respond")
CLOSED = (*DEAD, "drain", "fail")
# What squeue says of a job that Slurm has forgotten, and scancel also of one that has ended.
FORGOTTEN = re.compile("invalid job id", re.IGNORECASE)
OVER = re.compile("invalid job id|already completing or completed", re.IGNORECASE)
# What Slurm's commands say where they can't ask.
MUNGE_FAILED = re.compile("munge|authentication error", re.IGNORECASE)
CONTROLLER_DOWN = re.compile("unable to contact slurm controller|connection refused", re.IGNORECASE)
UNCONFIGURED = re.compile("configuration source|unable to process configuration file", re.IGNORECASE)


class NoAnswer(InputError):
    """Slurm can't be asked from here, or not now."""


class Refused(MessageError):
    """Slurm understood the request and refused it. ``said`` is the last line that Slurm printed, and ``message`` holds
    it."""

    def __init__(self, error_text: str) -> None:
        super().__init__(Printed(error_text))
        self.said = error_text


@dataclass(frozen=True)
class Job:
    """``nodes`` is Slurm's short form, as ``node[1-3]``; ``reason`` says why it waits, or why it ended."""

    number: str
    state: str
    nodes: str = ""
    reason: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def waits(self) -> bool:
        return self.state in WAITING

    @property
    def why(self) -> str:
        """Return Slurm's word for why it waits, with what that means."""
        meaning = next((text for begin, text in REASONS.items() if self.reason.startswith(begin)), "")
        reason = self.reason if self.reason not in ("", "None") else NO_REASON
        return f"{reason} ({meaning})" if meaning else reason


@dataclass(frozen=True)
class Partition:
    """``nodes`` is how many it has, up or not; ``hosts`` names them in Slurm's short form."""

    name: str
    default: bool
    nodes: int
    hosts: str


def require() -> None:
    """Raise NoAnswer if Slurm's commands are missing."""
    if shutil.which("sbatch") is None:
        raise NoAnswer(CantSubmit())


def partitions() -> list[Partition]:
    """Return those that the user may see."""
    by_name: dict[str, Partition] = {}
    for line in _ask("sinfo", "--noheader", "--format", "%P|%D|%N").splitlines():
        name, count, hosts = line.strip().split("|", 2)
        default, name = name.endswith("*"), name.rstrip("*")
        earlier = by_name.get(name)
        nodes = int(count) + (earlier.nodes if earlier else 0)
        by_name[name] = Partition(name, default, nodes, f"{earlier.hosts},{hosts}" if earlier else hosts)
    return [*by_name.values()]


def submit(script: Path, *options: str) -> str:
    """Hand a batch script in; returns the job's number. ``options`` outdo the script's own. Raises Refused."""
    # of several clusters the name follows after a semicolon
    return _ask("sbatch", "--parsable", *options, str(script)).strip().splitlines()[-1].partition(";")[0]


def submit_each(script: Path, nodes: Sequence[str]) -> str:
    """Hand a batch script in for each of ``nodes``; returns the jobs' numbers with commas between them.

    Not as tasks of one array. They could be told which node is their own (scontrol update ReqNodeList), but all ask for
    the same as Slurm sees it: once one of them can't start, it passes over the others (tried with 22.05: a busy node
    kept an idle one waiting). A job that asks for one node keeps no job waiting that asks for another.
    Raises Refused with nothing of it left, or NoAnswer.
    """
    numbers: list[str] = []
    try:
        for name in nodes:
            numbers.append(submit(script, f"--nodelist={name}"))
    except BaseException as error:
        if numbers:
            try:
                cancel(",".join(numbers))
            except (Refused, NoAnswer):
                if isinstance(error, Refused | NoAnswer):
                    raise NoAnswer(NotCancelled(error.message, ("scancel", *numbers))) from None
        raise
    return ",".join(numbers)


def jobs(numbers: str, one_node: bool = False) -> list[Job]:
    """Return what becomes of these jobs, as far as Slurm still knows of them. Raises NoAnswer.

    Jobs that Slurm has forgotten have the state UNKNOWN, where it remembers none. Each of them may be for ``one_node``
    that was asked for: it is then the job's node while it waits, too.
    """
    form = "%A|%T|%N|%n|%r"
    try:
        text = _ask("squeue", "--noheader", "--states", "all", "--jobs", numbers, "--format", form)
    except Refused as error:
        if FORGOTTEN.search(error.said):
            return _remembered(numbers)
        raise NoAnswer(About("squeue", error.message)) from None
    return [_job(line, one_node) for line in text.strip().splitlines()] or _remembered(numbers)


def _job(line: str, one_node: bool) -> Job:
    number, state, nodes, wanted, reason = line.split("|", 4)
    return Job(number, state, nodes or (wanted if one_node else ""), reason)


def _remembered(numbers: str) -> list[Job]:
    """From the accounting, where there is one: the controller forgets a job some minutes after its end."""
    remembered = []
    form = "JobIDRaw,State,NodeList"
    try:
        text = _ask("sacct", "--noheader", "--parsable2", "--allocations", "--jobs", numbers, "--format", form)
        for line in text.strip().splitlines():
            number, state, nodes = line.split("|", 2)
            state = state.split()[0]  # of "CANCELLED by 1000" too
            remembered.append(Job(number, state, "" if nodes.startswith("None") else nodes))
    except (Refused, NoAnswer, LookupError, ValueError):
        pass
    return remembered or [Job(number, UNKNOWN) for number in numbers.split(",")]


def find(name: str) -> str | None:
    """The number of the user's job of this name, as ``submit`` or ``submit_each`` returned it."""
    try:
        numbers = _ask("squeue", "--noheader", "--me", "--states", "all", "--name", name, "--format", "%A").split()
    except Refused:
        return None
    return ",".join(sorted({*numbers}, key=lambda number: (len(number), number))) or None


def cancel(numbers: str) -> None:
    """End jobs: SIGTERM to all of their processes, and after Slurm's KillWait SIGKILL. Raises Refused.

    Jobs that have ended may be among them: Slurm says so, and ends the others.
    """
    try:
        _ask("scancel", *numbers.split(","))
    except Refused as error:
        if not OVER.search(error.said):
            raise


def hosts(short: str) -> list[str]:
    """``node[1-2]`` as ``node1`` and ``node2``. Raises Refused."""
    if "[" not in short and "," not in short:  # most are, in a fleet
        return [short] if short else []
    return _ask("scontrol", "show", "hostnames", short).split()


def address(name: str) -> str:
    """Return where a node is reached: a name or an address. Raise Refused, or LookupError if Slurm knows none."""
    addresses = _ask("sinfo", "--all", "--noheader", "--Node", "--nodes", name, "--format", "%o").split()
    if not addresses:
        raise LookupError(name)
    return addresses[0]


def starts_containers() -> bool:
    """Return whether srun starts steps in an image: where the plugin Pyxis is, which adds options to it."""
    try:
        return "--container-image" in _ask("srun", "--help")
    except (Refused, NoAnswer):
        return False


def out_of_service(names: Collection[str], states: tuple[str, ...] = CLOSED) -> dict[str, str]:
    """Return the nodes that are in one of ``states``, or don't respond, with what Slurm says of them."""
    if not names:
        return {}
    reasons, wanted = {}, {*names}
    try:
        # of all nodes: the names of thousands don't fit into an argument
        for line in _ask("sinfo", "--noheader", "--Node", "--format", "%N|%T|%E").splitlines():
            name, state, reason = [*line.strip().split("|", 2), "", ""][:3]  # a reason may have a line break in it
            out = state.startswith(states) or state.endswith("*")
            if name in wanted and out:
                shown = state.rstrip("*") + (f" {NO_RESPONSE}" if state.endswith("*") else "")
                reasons[name] = shown + (f" ({reason})" if reason not in ("", "none") else "")
    except (Refused, NoAnswer):
        return {}
    return reasons


def _ask(*command: str) -> str:
    """Return what the command prints. Raise NoAnswer if it can't ask Slurm, else Refused."""
    if shutil.which(command[0]) is None:
        raise NoAnswer(SlurmMissing(command[0]))
    try:
        result = subprocess.run(
            command, env=_environment(os.environ), capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL, check=False, start_new_session=True,  # Ctrl-C is for the runner to act upon
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoAnswer(SlurmSilent(command[0], TIMEOUT_S)) from None
    if result.returncode == 0:
        return result.stdout
    raise _problem(command[0], result.stderr)


def _environment(caller: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in caller.items()
        if not name.startswith(OPTIONS_IN_VARIABLES) or name in TAKEN_FROM_VARIABLES
    }


def _problem(program: str, error_text: str) -> NoAnswer | Refused:
    """Return the error that a command of Slurm's means by ``error_text``."""
    if MUNGE_FAILED.search(error_text):
        return NoAnswer(NoMunge())
    if CONTROLLER_DOWN.search(error_text):
        return NoAnswer(NoController(program))
    if UNCONFIGURED.search(error_text):
        return NoAnswer(NoCluster(program))
    last = (error_text.strip().splitlines() or [NOTHING_PRINTED])[-1]
    return Refused(last.removeprefix(f"{program}: ").removeprefix("error: "))
