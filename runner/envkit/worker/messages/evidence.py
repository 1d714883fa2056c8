"""Messages on missing readings of a process: each gives the reason."""

from __future__ import annotations

from envkit.messages import Message


class ReadingFailed(Message):
    """A library, a driver or the system raised an exception."""

    template = "{error}[: {reason}]"

    error: str  # the class of an exception
    reason: str | None = None


class VariablesChanged(Message):
    """The program changed variables that the OpenMP runtime reads, before or after it read them."""

    template = "the program changed {names:list}, and the OpenMP runtime does not tell which value it read"

    names: tuple[str, ...]


class MklSilent(Message):
    """No function of MKL tells which code it takes."""

    template = "this PyTorch has no way to ask MKL which code it uses"


class AllocatorSilent(Message):
    """Torch has another allocator than its own for GPUs."""

    template = "torch's allocator is {allocator}, which does not report requests"

    allocator: str


class NoWorkspaceRequest(Message):
    """No workspace was requested for cuBLAS."""

    template = "torch's allocator was asked for nothing when cuBLAS was to get a workspace"


class NoDriverVersion(Message):
    """The driver does not tell its version."""

    template = "the driver does not report its version"


class DriverHidesQueues(Message):
    """The driver is too old to tell the number of its queues."""

    template = "the driver is for CUDA {cuda}, and reports its queues since {since}"

    cuda: str
    since: str


class NoContext(Message):
    """The thread has no context on the GPU."""

    template = "this thread has no context on the GPU"


class QueuesNotTold(Message):
    """The driver refused to tell the number of its queues. ``status`` is CUresult."""

    template = "the driver does not report its queues (cuCtxGetDevResource gave {status:d})"

    status: int


class StreamsKeptApart(Message):
    """Kernels did not overlap even where no queue keeps them apart."""

    template = (
        "two kernels in each of {streams} streams took the time of {kernels:g} kernels, not of 2: "
        "more than queues keeps streams apart"
    )

    streams: int
    kernels: float


class QueuesUnclear(Message):
    """Kernels took neither the time of one queue nor that of several."""

    template = (
        "two kernels in each of {streams} streams took the time of {kernels:g} kernels: "
        "one queue takes {one}, others {several} at most"
    )

    streams: int
    kernels: float
    one: int
    several: int


class UserLimit(Message):
    """The limit of a user's processes is the nearest one."""

    template = "ulimit -u is {limit:d}, and this user has {used:d}"

    limit: int
    used: int


class GroupLimit(Message):
    """The limit of a control group's processes is the nearest one."""

    template = "pids.max of its cgroup is {limit:d}, and {used:d} are there"

    limit: int
    used: int


class SeenFromOutside(Message):
    """A user's command left no evidence."""

    template = (
        "the command left no evidence of its own, so only preloads and variables were seen, from outside: {reason}"
    )

    reason: Message


class SomeUnobserved(Message):
    """A process of a user's command left no evidence."""

    template = "a process of the command left no evidence: {reason}"

    reason: Message


class LeavesNoEvidence(Message):
    """Advice for a command that left no evidence, though each of its processes had the hook."""

    template = "let it end by itself, in a Python that has imported torch and whose PYTHONPATH the command only adds to"
