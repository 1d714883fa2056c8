"""Shared by the container engines: paths inside, options of a command line, limits and GPUs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.common.errors import InputError
from envkit.engines.base import PACKAGE, EngineOptions, Launch, Outcome
from envkit.engines.messages import Killed, NoContainerToolkit, OutOfMemory, OverMemoryLimit
from envkit.engines.setup_messages import (
    BadMemory,
    HidesImage,
    LimitNotInForce,
    NoDevice,
    NoDriver,
    Unmountable,
    UnreadableInside,
)
from envkit.messages import Message
from envkit.profiles.environment import capabilities
from envkit.profiles.inspection import Inspection
from envkit.worker import nvml
from envkit.worker.host import expand_cpu_list
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
# Megabytes and the like as Docker's own command line reads them.
UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
SIZE = re.compile(r"(\d+)([bkmg]?)")
# A quota is kept in whole microseconds of a period.
ROUNDING = 1.01
TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
# Words of the engines' messages where their way to NVIDIA's GPUs is missing.
NO_WAY = re.compile(
    "could not select device driver|"  # Docker, without the toolkit's runtime
    "failed to discover GPU vendor from CDI|"  # Docker 29 and later, without the toolkit's description of devices
    "unresolvable CDI devices|"  # Podman, without that description
    r"stat nvidia\.com/gpu"  # Podman before 4.1, which knows no such descriptions
)


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
    worker_request = launch.request
    return worker_request and replace(worker_request, work=relocated(worker_request.work, DATA))


def mounts(launch: Launch) -> list[str]:
    """``HOST:INSIDE:ro`` or ``:rw`` for each folder that is mounted: only that of a user's command can be written to.

    Raises InputError for a folder that can't be mounted, or not under its own name.
    """
    folders = [f"{PACKAGE}:{CODE}:ro"]
    if launch.data:
        folders.append(f"{launch.data}:{DATA}:ro")
    if launch.folder:
        if any(path == launch.folder or Path(launch.folder) in Path(path).parents for path in IMAGES_OWN):
            raise InputError(HidesImage(launch.folder))
        folders.append(f"{launch.folder}:{launch.folder}:rw")
    for folder in filter(None, (str(PACKAGE), launch.data, launch.folder)):
        if any(letter in folder for letter in ":,"):
            raise InputError(Unmountable(folder))
    return folders


def variables(launch: Launch) -> dict[str, str]:
    """Return a worker's variables: the profile's, and a home for a user's own command, which may want to cache."""
    home = {"HOME": HOME} if launch.folder and "HOME" not in launch.passed_on else {}
    return {**home, **launch.variables}


def passed_on(launch: Launch) -> dict[str, str]:
    """Return the other variables, which an engine's command reads from its environment: all can read its words."""
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
    requested = options.to_json()
    words = [
        part for name in sorted(LIMITS & requested.keys()) for part in (f"--{name.replace('_', '-')}", requested[name])
    ]
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
    """Return whether root runs its command in a folder of another user, where only privileges let it write."""
    if caller is None or launch.folder is None or os.getuid() != 0:
        return False
    return Path(launch.folder).exists() and Path(launch.folder).stat().st_uid != 0


def run_options(launch: Launch, options: EngineOptions, rootless: bool, gpus: tuple[str, ...] = ()) -> list[str]:
    """The options of ``docker run`` and ``podman run``. A variable without a value gets that which these have.

    ``gpus`` are the engine's own words for all GPUs of the machine.
    """
    volumes = [part for mount in mounts(launch) for part in ("--volume", mount)]
    texts = [*passed_on(launch), *(f"{name}={value}" for name, value in variables(launch).items())]
    environment = [part for text in texts for part in ("--env", text)]
    caller = user(launch, rootless)
    as_user = ["--user", caller] if caller else []
    fixed = ["--network", network(launch), "--shm-size", SHM, "--workdir", working_folder(launch)]
    most = most_processes(rootless)
    fixed += ["--pids-limit", str(most)] if most else []
    fixed += [part for option in (READS_MOUNTS, NO_NEW_PRIVILEGES) for part in ("--security-opt", option)]
    fixed += ["--cap-drop", "ALL", *(part for name in allowed(launch, caller) for part in ("--cap-add", name))]
    fixed += ["--interactive"] if launch.work is not None else []
    return [*fixed, *(gpus if launch.gpus else ()), *as_user, *limits(options), *volumes, *environment]


def out_of_memory(options: EngineOptions) -> OutOfMemory | OverMemoryLimit:
    """Return the failure of a worker that the kernel killed for its memory."""
    return OverMemoryLimit(options.memory) if options.memory else OutOfMemory()


def explained(outcome: Outcome, options: EngineOptions) -> Outcome:
    """Say that a kill under a memory limit is most likely the kernel's, where an engine does not tell."""
    if options.memory and outcome.failure == KILLED:
        return replace(outcome, failure=Killed(KILLED.signal, options.memory))
    return outcome


def memory_bytes(text: str) -> int:
    """Bytes of ``4g``. Raises InputError for another text."""
    match = SIZE.fullmatch(text.lower())
    if match is None:
        raise InputError(BadMemory(text))
    return int(match.group(1)) * UNITS[match.group(2)]


def require_in_force(options: EngineOptions, engine: str, inspection: Inspection) -> None:
    """Raise InputError where what an image's worker sees is more than what was asked for.

    Podman without root ignores limits where control groups are of version 1, or without systemd. The measurement would
    then be one of the whole machine, in the name of a part of it. A CPU quota and a memory limit are known from control
    groups only: where no group can be seen, as under Apptainer with root's rights, nothing can be said of the two.
    """
    facts = inspection["facts"]
    # Podman and Apptainer read more than Docker does: 1.5g, 4gib
    memory = options.memory if options.memory and SIZE.fullmatch(options.memory.lower()) else None
    requested: dict[str, tuple[str | None, Callable[[str], float], float | None]] = {
        "cpus": (options.cpus, lambda text: float(text) * ROUNDING, facts["cpu_quota"]),
        "cpuset_cpus": (options.cpuset_cpus, lambda text: len(expand_cpu_list(text)), facts["affinity_cpus"]),
        "memory": (memory, memory_bytes, inspection["memory_limit"]),
    }
    for name, (text, most, effective) in requested.items():
        is_known = inspection["groups_seen"] or name == "cpuset_cpus"
        if text is not None and is_known and (effective is None or effective > most(text)):
            option = f"--{name.replace('_', '-')} {text}"
            raise InputError(LimitNotInForce(option, engine))


def require_gpus(library: nvml.Nvml | None = None) -> None:
    """Raise InputError where the machine has no driver, or no device, to give to a container.

    ``library`` is the driver's, which is looked for where it is not given.
    """
    try:
        driver = library or nvml.start()
    except nvml.Unavailable as error:
        raise InputError(NoDriver(error.message)) from None
    if not driver.devices():
        raise InputError(NoDevice(driver.driver()))


def without_gpus(failure: Message | None, printed: str) -> Message | None:
    """Return ``failure``, or NoContainerToolkit if the engine ``printed`` that it could give the worker no GPU."""
    return NoContainerToolkit(TOOLKIT) if failure and NO_WAY.search(printed) else failure
