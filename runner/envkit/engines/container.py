"""Shared by the container engines: paths inside, and limits as options of a command line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.common.errors import InputError
from envkit.engines.base import PACKAGE, EngineOptions, Launch, Outcome
from envkit.engines.messages import Killed, OutOfMemory, OverMemoryLimit
from envkit.engines.setup_messages import HidesImage, Unmountable, UnreadableInside
from envkit.profiles.environment import capabilities
from envkit.worker.request import STDIN, WorkerRequest, relocated

INTERPRETER = "/opt/kit/bin/python"
FOLDER = "/kit"
CODE = f"{FOLDER}/envkit"
WORKER = f"{CODE}/worker/__main__.py"
DATA = "/data"
IMAGE = "envkit-cpu"
SHM = "2g"  # /dev/shm, through which DataLoader workers hand over batches; the engines' default is 64 MiB
KILLED = Killed("SIGKILL")
# Of a process whose user has none inside: any user may write there.
HOME = "/tmp"
# Folders of the image that a user's folder, which keeps its name inside, must not hide.
IMAGES_OWN = ("/bin", "/dev", "/etc", "/kit", "/lib", "/lib64", "/opt/kit", "/proc", "/sbin", "/sys", "/usr")
LIMITS = frozenset({"cpus", "cpuset_cpus", "memory"})


@dataclass(frozen=True)
class Kind:
    """Differences between engines that start containers."""

    gpus: tuple[str, ...]  # the words by which it is asked for all GPUs of the machine
    start: str  # the word of its command line after which its options begin
    mount: str  # the option that mounts a folder
    mounted: Callable[[str], str] = str  # how it is told of ``HOST:INSIDE:rw``
    # of a launch and the caller's variables, those that its own command is to have
    callers: Callable[[Launch, Mapping[str, str]], Mapping[str, str]] = lambda launch, variables: variables
    attaches: bool = True  # it has to be told to join a command to the terminal, which is no process of the caller's


DOCKER = Kind(("--gpus", "all"), "run", "--volume")


def made_by(name: str, target: str = "image") -> str:
    """How one makes the image or SIF of that name, where it is one of ours (images/variants.yaml).

    ``envkit-cpu:debian`` and ``envkit-cpu-debian`` are the variant ``debian``, and ``envkit-cuda`` is ``cuda``.
    The tag ``latest`` is what engines call an image without one.
    """
    ours = re.fullmatch(rf"(?:.*/)?(?:{IMAGE}[:-](.+)|envkit-(cuda[^:]*)(?::.*)?)", name.removesuffix(":latest"))
    return f"make {target} VARIANT={ours[1] or ours[2]}" if ours else f"make {target}"


def argv(launch: Launch) -> list[str]:
    """Return what runs inside: a program, or the worker, which finds its code under the name that it has there."""
    return [*launch.prefix, *(launch.program or (INTERPRETER, WORKER, STDIN))]


def request(launch: Launch) -> WorkerRequest | None:
    """Return what the worker inside is to do, with the path that its data has there."""
    asked = launch.request
    return asked and replace(asked, work=relocated(asked.work, DATA))


def mounts(launch: Launch) -> list[str]:
    """``HOST:INSIDE:ro`` or ``:rw`` for each folder that is mounted: only that of a user's command can be written to.

    Raises InputError for a folder that can't be mounted, or not under its own name.
    """
    found = [f"{PACKAGE}:{CODE}:ro"]
    if launch.data:
        found.append(f"{launch.data}:{DATA}:ro")
    if launch.folder:
        if any(one == launch.folder or Path(launch.folder) in Path(one).parents for one in IMAGES_OWN):
            raise InputError(HidesImage(launch.folder))
        found.append(f"{launch.folder}:{launch.folder}:rw")
    for folder in filter(None, (str(PACKAGE), launch.data, launch.folder)):
        if any(letter in folder for letter in ":,"):
            raise InputError(Unmountable(folder))
    return found


def variables(launch: Launch) -> dict[str, str]:
    """What a worker's process is given: the profile's, and a home for a user's own command, which may want to cache."""
    home = {"HOME": HOME} if launch.folder and "HOME" not in launch.passed_on else {}
    return {**home, **launch.variables}


def passed_on(launch: Launch) -> dict[str, str]:
    """What it is given besides, and an engine's own command is to find among its variables: all can read its words."""
    return {name: value for name, value in launch.passed_on.items() if name not in launch.variables}


def working_folder(launch: Launch) -> str:
    """Where inside a worker, or what takes its place, is started."""
    return launch.folder if launch.program and launch.folder else FOLDER


def network(launch: Launch) -> str:
    """None, but for a user's own command, which may fetch its data."""
    return "host" if launch.folder else "none"


def user(launch: Launch, rootless: bool) -> str | None:
    """The user and group of a user's own command, so that what it writes is the caller's; None for the image's user.

    Where the engine runs ``rootless``, root inside is the caller. Raises InputError for code that is closed to others,
    where that is who the image's user is.
    """
    if launch.folder:
        return "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    code = PACKAGE
    if code.stat().st_mode & 0o005 != 0o005:
        raise InputError(UnreadableInside(str(code), ("chmod", "-R", "go+rX", str(code))))
    return None


def limits(options: EngineOptions) -> list[str]:
    """The limits in the words that docker, podman and apptainer share."""
    given = options.to_json()
    words = [part for name in sorted(LIMITS & given.keys()) for part in (f"--{name.replace('_', '-')}", given[name])]
    # swap counts too: a worker that swaps would be measured as a slow one
    return [*words, *(["--memory-swap", options.memory] if options.memory else [])]


# The capability with which root writes to files of others.
OTHERS_FILES = ("DAC_OVERRIDE",)
FEWEST_PROCESSES, PROCESSES_PER_CPU = 4096, 256
# Under SELinux a container may read no folder of the user's otherwise; to relabel these (``:Z``) would change them.
READS_MOUNTS = "label=disable"
NO_NEW_PRIVILEGES = "no-new-privileges"


def most_processes(rootless: bool) -> int | None:
    """Return how many processes a container may have, so that none starts them without end.

    A thread counts as one, and a runtime may start several for each CPU in each of several ranks. It is None without
    root: most machines can't limit them then, and the user's own limits count.
    """
    return None if rootless else FEWEST_PROCESSES + PROCESSES_PER_CPU * (os.cpu_count() or 1)


def allowed(launch: Launch, caller: str | None) -> list[str]:
    """Return the capabilities that are left to a container, which can't gain others.

    ``caller`` is who its command runs as, where it is not the image's user.
    """
    return [*capabilities(launch.prefix), *(OTHERS_FILES if of_others(launch, caller) else ())]


def of_others(launch: Launch, caller: str | None) -> bool:
    """Whether root runs its command in a folder of another user, where only privileges let it write."""
    if caller is None or launch.folder is None or os.getuid() != 0:
        return False
    return Path(launch.folder).exists() and Path(launch.folder).stat().st_uid != 0


def run_options(launch: Launch, options: EngineOptions, rootless: bool, gpus: tuple[str, ...] = ()) -> list[str]:
    """The options of ``docker run`` and ``podman run``. A variable without a value gets that which these have.

    ``gpus`` are the engine's own words for all GPUs of the machine.
    """
    volumes = [part for mount in mounts(launch) for part in ("--volume", mount)]
    texts = [*passed_on(launch), *(f"{name}={value}" for name, value in variables(launch).items())]
    given = [part for text in texts for part in ("--env", text)]
    caller = user(launch, rootless)
    as_user = ["--user", caller] if caller else []
    fixed = ["--network", network(launch), "--shm-size", SHM, "--workdir", working_folder(launch)]
    most = most_processes(rootless)
    fixed += ["--pids-limit", str(most)] if most else []
    fixed += [part for option in (READS_MOUNTS, NO_NEW_PRIVILEGES) for part in ("--security-opt", option)]
    fixed += ["--cap-drop", "ALL", *(part for name in allowed(launch, caller) for part in ("--cap-add", name))]
    fixed += ["--interactive"] if launch.work is not None else []
    return [*fixed, *(gpus if launch.gpus else ()), *as_user, *limits(options), *volumes, *given]


def out_of_memory(options: EngineOptions) -> OutOfMemory | OverMemoryLimit:
    """Return the failure of a worker that the kernel killed for its memory."""
    return OverMemoryLimit(options.memory) if options.memory else OutOfMemory()


def explained(outcome: Outcome, options: EngineOptions) -> Outcome:
    """Say that a kill under a memory limit is most likely the kernel's, where an engine does not tell."""
    if options.memory and outcome.failure == KILLED:
        return replace(outcome, failure=Killed(KILLED.signal, options.memory))
    return outcome
