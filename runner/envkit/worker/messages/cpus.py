"""Messages on who decided with how many threads, or on which CPUs, a process computes."""

from __future__ import annotations

from envkit.messages import Message, Note


class SetByProgram(Note):
    """The program set the variable (NAME=VALUE) after its start. ``libraries`` are loaded and may have done it."""

    template = "the program itself[ or {libraries:or}, which it imports,] set {variable} after its start"

    variable: str
    libraries: tuple[str, ...] = ()


class SetByCall(Note):
    """No variable has that number, so a function was called. ``libraries`` are loaded and may have done it."""

    template = "the program itself[ or {libraries:or}, which it imports,] called torch.set_num_threads"

    libraries: tuple[str, ...] = ()


class SharedByMkl(Note):
    """MKL takes the process for one of several ranks of MPI, by a variable (NAME=VALUE) of the launcher."""

    template = "MKL divides the cores among MPI's ranks ({variable}), and PyTorch takes its number of threads from MKL"

    variable: str


class SetOnLine(Note):
    """A command line has the variable (NAME=VALUE), before a program or behind ``env``."""

    template = "the command line has {variable}"

    variable: str


class SetByParent(Note):
    """A process above set the variable (NAME=VALUE). ``starter`` is its program without arguments."""

    template = "{starter} (process {pid:d}) started it with {variable}"

    variable: str
    starter: str
    pid: int


class SetAbove(SetByParent):
    """The variables of a process above can't be read: it or one above it set the variable."""

    template = "{starter} (process {pid:d}, whose variables can't be read) or one above it started it with {variable}"


class SetAtFirst(SetByParent):
    """The topmost process had the variable from its start: an image, a pod or a service has it."""

    template = "{variable} comes from the image, pod or service: {starter} (process {pid:d}) was started with it"


class BoundByProgram(Note):
    template = "the program itself, or a library that it imports, bound it after its start (sched_setaffinity)"


class BoundByTool(Note):
    """A command binds what it starts, and is then replaced by that."""

    template = "{tool} binds it"

    tool: str


class BoundBySlurm(Note):
    """Slurm binds a task. ``cpus_per_task`` is what the job asked for, if it asked."""

    template = "Slurm binds its task[, for which --cpus-per-task={cpus_per_task} was given]"

    cpus_per_task: str | None = None


class BoundByMpi(Note):
    template = "{starter} binds each rank"

    starter: str


class BoundByGroup(Note):
    """``control_group`` is the path of a control group."""

    template = "the cpuset of its control group[ {control_group}] has no more"

    control_group: str | None = None


class BoundByRuntime(Note):
    """The OpenMP runtime of a process above bound the thread that started this one."""

    template = "{variable} binds the thread of {starter} (process {pid:d}) that started it"

    variable: str
    starter: str
    pid: int


class BoundByParent(Note):
    template = "{starter} (process {pid:d}) started it so"

    starter: str
    pid: int


# By the part of the evidence that holds one of them.
DECIDERS: dict[str, tuple[type[Message], ...]] = {
    "threads_by": (SetByProgram, SetByCall, SetOnLine, SetByParent, SharedByMkl, BoundByProgram),
    "cpus_by": (BoundByTool, BoundBySlurm, BoundByMpi, BoundByGroup, BoundByRuntime, BoundByParent),
}
