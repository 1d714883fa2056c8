"""What the container engines have in common: where things are inside, and the limits as options of a command line."""

from __future__ import annotations

from dataclasses import replace

from runner.engines.base import PROJECT, EngineOptions, Outcome, Task
from runner.errors import InputError

INTERPRETER = "/opt/kit/bin/python"
FOLDER = "/kit"
CODE = f"{FOLDER}/runner"
DATA = "/data"
IMAGE = "envkit-cpu"
SHM = "2g"  # /dev/shm, through which DataLoader workers hand over batches; the engines' default is 64 MiB
KILLED = "was killed by signal SIGKILL"
LIMITS = frozenset({"cpus", "cpuset_cpus", "memory"})


def argv(task: Task) -> list[str]:
    """What runs inside: the worker, which finds its code and data under the names they have there."""
    arguments = [DATA if argument == task.data else argument for argument in task.arguments]
    return [*task.prefix, INTERPRETER, "-m", "runner.worker", *arguments]


def mounts(task: Task) -> dict[str, str]:
    """Host folder -> folder inside. All are mounted read-only. Raises InputError for code that is closed to others."""
    code = PROJECT / "runner"
    if code.stat().st_mode & 0o005 != 0o005:
        raise InputError(f"{code}: a container's ordinary user can't read it: chmod -R go+rX {code}")
    return {str(code): CODE} | ({task.data: DATA} if task.data else {})


def limits(options: EngineOptions) -> list[str]:
    """The limits in the words that docker, podman and apptainer share."""
    given = options.to_json()
    return [part for name in sorted(LIMITS & given.keys()) for part in (f"--{name.replace('_', '-')}", given[name])]


def run_options(task: Task, options: EngineOptions) -> list[str]:
    """The options of ``docker run`` and ``podman run``."""
    volumes = [part for host, inside in mounts(task).items() for part in ("--volume", f"{host}:{inside}:ro")]
    variables = [part for name, value in task.variables.items() for part in ("--env", f"{name}={value}")]
    # swap counts too: a worker that swaps would be measured as a slow one
    swap = ["--memory-swap", options.memory] if options.memory else []
    fixed = ["--network", "none", "--shm-size", SHM, "--workdir", FOLDER]
    return [*fixed, *limits(options), *swap, *volumes, *variables]


def out_of_memory(options: EngineOptions) -> str:
    limit = f"its limit of {options.memory} (--memory)" if options.memory else "the machine has"
    return f"was killed because it needed more memory than {limit}"


def explained(outcome: Outcome, options: EngineOptions) -> Outcome:
    """Say that a kill under a memory limit is most likely the kernel's, where an engine does not tell."""
    if options.memory and outcome.failure == KILLED:
        return replace(outcome, failure=f"{KILLED}, most likely for its memory limit of {options.memory} (--memory)")
    return outcome
