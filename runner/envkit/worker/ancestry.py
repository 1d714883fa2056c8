"""Tell which process decided with how many threads, or on which CPUs, another one computes.

Everything is read from /proc (proc(5)): the variables and the CPUs of a process, and of those above it. The nearest
process that has other variables, or more CPUs, than what it started made the choice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envkit.messages import Message
from envkit.worker.host import expand_cpu_list
from envkit.worker.initial_environment import started_with
from envkit.worker.libraries import setting
from envkit.worker.messages.cpus import (
    BoundByGroup,
    BoundByMpi,
    BoundByParent,
    BoundByRuntime,
    BoundBySlurm,
    BoundByTool,
    SetAbove,
    SetAtFirst,
    SetByParent,
    SetOnLine,
)
from envkit.worker.readings import matching, text_of

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
PYTHONS = ("python", "pypy")
# Programs that bind themselves and then become the command that they were given.
TOOLS = ("taskset", "numactl", "hwloc-bind", "likwid-pin", "schedtool", "dplace", "omplace")
# Daemons and commands that bind the ranks of MPI programs (Open MPI, PRRTE, Hydra and its descendants, Cray PALS).
MPI = ("mpirun", "mpiexec", "orterun", "orted", "prte", "prted", "prterun", "hydra_pmi_proxy", "hydra_bstrap_proxy",
       "pmi_proxy", "palsd")  # fmt: skip
STEP_DAEMON = "slurmstepd"
FARTHEST = 32  # processes above one


class Process(NamedTuple):
    """One process; ``variables`` are None where they can't be read, and ``cpus`` those of any of its threads."""

    pid: int
    parent: int
    argv: tuple[str, ...]
    variables: Mapping[str, str] | None
    cpus: frozenset[int]

    @property
    def command(self) -> str:
        return command(self.argv)


def process(pid: int) -> Process | None:
    """Return what is known of a process; None where it has ended."""
    folder = Path(f"/proc/{pid}")
    fields = dict(line.split(":", 1) for line in text_of(folder / "status").splitlines() if ":" in line)
    if "PPid" not in fields:
        return None
    argv = text_of(folder / "cmdline").rstrip("\0").split("\0")
    block = text_of(folder / "environ")
    statuses = map(text_of, matching(folder, "task/*/status"))
    masks = [re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.M) for status in statuses]
    cpus = frozenset().union(*(expand_cpu_list(mask[1]) for mask in masks if mask))
    name = (fields["Name"].strip(),)  # of a kernel's thread, or of a process without a command line
    return Process(pid, int(fields["PPid"]), tuple(argv) if argv[0] else name, started_with(block) or None, cpus)


def above(pid: int) -> Iterator[Process]:
    """Yield the processes above ``pid``, the nearest first."""
    ancestor = process(pid)
    for _ in range(FARTHEST):
        ancestor = process(ancestor.parent) if ancestor is not None and ancestor.parent > 0 else None
        if ancestor is None:
            return
        yield ancestor


def command(argv: Sequence[str]) -> str:
    """Return a program's name, and that of its script or module, without all arguments: these may hold secrets."""
    program = argv[0].lstrip("-").rpartition("/")[2].split(" ")[0]
    if not program.startswith(PYTHONS) and program not in SHELLS:
        return program
    words = list(argv[1:])
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
        words = words[2:] if words[0] in ("-W", "-X", "-o", "-O") else words[1:]
    if not words or words[0] == "-c":
        return program
    if words[0] == "-m":
        return " ".join([program, *words[:2]])
    script = words[0].rpartition("/")[2]
    is_entry_point = program.startswith(PYTHONS) and "." not in script
    return script if is_entry_point else f"{program} {script}"


def set_by(pid: int, name: str, value: str) -> Message:
    """Return which process above ``pid`` gave it the variable ``name``, which it was started with."""
    last, variable = process(pid), f"{name}={value}"
    for ancestor in above(pid):
        if ancestor.variables is None:
            return SetAbove(variable, ancestor.command, ancestor.pid)
        if ancestor.variables.get(name) != value and any(variable in word.split() for word in ancestor.argv):
            return SetOnLine(variable)
        if ancestor.variables.get(name) != value:
            return SetByParent(variable, ancestor.command, ancestor.pid)
        last = ancestor
    return SetAtFirst(variable, last.command if last else "", pid if last is None else last.pid)


def bound_by(pid: int, cpus: frozenset[int]) -> Message:
    """Return what had ``pid`` begin on ``cpus`` alone, which are not all of the machine's."""
    child = process(pid)
    for ancestor in above(pid):
        if child is None or not ancestor.cpus <= cpus:
            return _between(child, ancestor, cpus)
        child = ancestor
    return BoundByGroup(_group(pid))


def _between(child: Process | None, parent: Process, cpus: frozenset[int]) -> Message:
    """Return what took CPUs away between a process and the one that it started."""
    variables = (child.variables if child is not None else None) or {}
    if parent.command.startswith(STEP_DAEMON):
        return BoundBySlurm(variables.get("SLURM_CPUS_PER_TASK"))
    if parent.command in MPI:
        return BoundByMpi(parent.command)
    if (tool := _tool(variables, parent.argv)) is not None:
        return BoundByTool(tool)
    if child is not None and (group := _group(child.pid)) != _group(parent.pid) and _allows(group) == cpus:
        return BoundByGroup(group)
    variable = next((name for name in setting("binding") if name in (parent.variables or {})), None)
    if variable is not None and len(cpus) == 1:
        return BoundByRuntime(variable, parent.command, parent.pid)
    return BoundByParent(parent.command, parent.pid)


def _tool(variables: Mapping[str, str], starter: Sequence[str]) -> str | None:
    """Return which tool became the process: the one that a shell started, or that its parent's command line names."""
    words = [variables.get("_", ""), *starter, *(word for text in starter if " " in text for word in text.split())]
    return next((name for word in words if (name := os.path.basename(word)) in TOOLS), None)  # noqa: PTH119


def _group(pid: int) -> str | None:
    """Return the control group that decides on a process's CPUs: of version 1's cpuset, else of version 2."""
    lines = [line.split(":", 2) for line in text_of(Path(f"/proc/{pid}/cgroup")).splitlines()]
    paths = {controllers: path for _, controllers, path in lines}
    return next((path for names, path in paths.items() if "cpuset" in names.split(",")), paths.get(""))


def _allows(group: str | None) -> frozenset[int] | None:
    """Return the CPUs that a control group allows (``cpuset.cpus.effective``), None where that can't be read."""
    for root in ("/sys/fs/cgroup/cpuset", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus"):
            text = text_of(Path(f"{root}{group}", name)).strip()
            if text:
                return frozenset(expand_cpu_list(text))
    return None
