"""Messages of the engines. How a worker ended is a clause whose subject is the worker."""

from __future__ import annotations

from envkit.messages import Advice, Message


class NoNodesToTrainOn(Message):
    """``nodes`` were asked for outside of a Slurm job."""

    template = (
        "--nodes {nodes}: this process is not in a Slurm job; submit one: envkit submit PROFILE --nodes "
        "{nodes} --nproc N"
    )

    nodes: int


class NoCacheFolder(Message):
    """The user has no home folder."""

    template = "the measured cores can't be kept without a home folder; set XDG_CACHE_HOME"


class ExitStatus(Message):
    """A worker ended with a status other than 0, and the engine knows no more."""

    template = "ended with exit status {status}[; {memory}]"

    status: int
    memory: Message | None = None


class Killed(Message):
    """A signal ended a worker, and the engine does not know who sent it."""

    template = (
        "was killed by signal {signal}[, most likely because it reached its memory limit of {limit} (--memory)]"
        "[; {memory}]"
    )

    signal: str  # as SIGKILL
    limit: str | None = None
    memory: Message | None = None


class TimedOut(Message):
    """A worker took too long, and the kit ended it."""

    template = "did not end within {seconds:g} s (--timeout) and was stopped[: {paused_by} had paused it]"

    seconds: float
    paused_by: str | None = None  # SIGSTOP, which another process sent


class OutOfMemory(Message):
    """The kernel killed a worker because memory ran out."""

    template = "was killed because it needed more memory than the machine has"


class OverMemoryLimit(Message):
    """The kernel killed a worker because it reached the limit of its container."""

    template = "was killed because it needed more memory than its limit of {limit} (--memory)"

    limit: str


class NotStarted(Message):
    """An engine did not start the worker. ``reason`` is what the engine printed."""

    template = "was not started: {reason}"

    reason: str


class EngineFault(Message):
    """An engine did not start the worker, for a reason that the kit knows how to mend."""

    template = "was not started ({fix})"

    fix: str


class NoContainerToolkit(Message):
    """A container engine has no way to NVIDIA's GPUs."""

    template = (
        "was not started: NVIDIA's container toolkit is missing, or not set up for this engine ({url}); "
        "for Podman: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    )

    url: str


class DaemonLost(Message):
    """The Docker daemon stopped answering while a worker ran."""

    template = "was lost: the Docker daemon does not answer any more ({reason})"

    reason: str


class NodeLost(Message):
    """A node of a training on several nodes is gone."""

    template = "lost {node}: Slurm says that the node is {state}"

    node: str
    state: str  # in Slurm's words


class InspectionFailed(Message):
    """The worker that describes an image failed. ``printed`` is its last line."""

    template = "{image}: the worker {failure}[: {printed}][; the worker needs Python {oldest} or later, with torch]"

    image: str
    failure: Message
    printed: str | None = None
    oldest: str | None = None  # of a Python of this machine


class ImageUnreadable(Message):
    """The file of an image can't be read."""

    template = "{image}: {reason}; {fix}"

    image: str
    reason: Message
    fix: Message


class BuildImage(Advice):
    """Build an image's file, or use another one."""

    template = "build it with: {build}, or name another"

    build: str


class NotPython(Message):
    """The worker that describes an image printed something else."""

    template = "{image}: the worker printed no description of the image; name a Python interpreter with torch"

    image: str


class NoTorch(Message):
    """A Python of this machine lacks torch. ``untold`` is a command that does not tell which Python it starts."""

    template = (
        "{python}: has no torch[, and it is unknown which Python '{untold}' starts]; name the Python that "
        "trains, with torch {minimum} or later: --python {example}"
    )

    python: str
    minimum: str
    example: str
    untold: str | None = None


class NoTorchInImage(Message):
    """A container's image lacks torch."""

    template = "{image}: has no torch; install it there, or name another image"

    image: str


class TooOld(Message):
    """The kit's own workloads can't be trained with this Python or torch. ``example`` is a Python to name instead."""

    template = (
        "{image}: has {package} {version}, and envkit's own workloads need {package} {minimum} or later[; name another "
        "Python: --python {example}]"
    )

    image: str
    package: str
    version: str
    minimum: str
    example: str | None = None


# What envkit.engines.start prints by these codes. Its subject is the worker.


class NotPassedOn(Message):
    """Slurm did not hand on the variable that says what to start."""

    template = "did not start: srun has not passed {variable} on; leave SLURM_EXPORT_ENV unset"

    variable: str


class NotStartedOn(Message):
    """A node can't start a program."""

    template = "did not start on {node}: {program} can't be started: {reason}"

    program: str
    node: str
    reason: str
