"""Messages of the worker, which prints them as JSON. A problem is a clause whose subject is the worker.

To import this package is to import all of them, so that ``envkit.messages.from_json`` knows them.
"""

from __future__ import annotations

from envkit.messages import Message
from envkit.worker.messages import captions, evidence, gpus, hook, metrics, readings, user_command

__all__ = ["captions", "evidence", "gpus", "hook", "metrics", "readings", "user_command"]


class ProcessKilled(Message):
    """A signal ended one of the worker's processes."""

    template = "lost {process}, which was killed by signal {signal}"

    process: str  # as "rank 1 on node2"
    signal: str


class ProcessEnded(Message):
    """One of the worker's processes ended with a status other than 0."""

    template = "lost {process}, which ended with exit status {status}"

    process: str
    status: int


class MemoryRanOut(Message):
    """The kernel's out-of-memory killer ended ``program``, or so many ``children`` of it.

    A control ``group`` reached its limit, or the ``machine`` has no more than so many bytes. ``retaining`` names a
    variable that has the allocator keep freed memory.
    """

    template = (
        "the kernel killed [{children:count child process|child processes} of ]{program} because memory ran out"
        "[; control group {group} reached its limit of {limit:size}][ (peak {peak:size}, with page cache and children)]"
        "[; the machine has {machine:size}][; {retaining} keeps freed memory, which makes that likelier]"
    )

    program: str
    children: int | None = None
    group: str | None = None
    limit: int | None = None
    peak: int | None = None
    machine: int | None = None
    retaining: str | None = None


class InvalidRequest(Message):
    """The document that says what the worker is to do is invalid, or can't be read."""

    template = "can't read its request in {file}[: {reason}][: {key}: expected {wanted:or}]"

    file: str  # or - for standard input
    key: str | None = None
    wanted: tuple[str, ...] = ()  # JSON's names of types, or the values that there are
    reason: str | None = None


class NoRendezvous(Message):
    """A worker on several nodes was started without the address of their meeting."""

    template = "was not told where nodes meet: its environment lacks {variable}"

    variable: str


class TorchrunFailed(Message):
    """torchrun itself failed, for example because nodes did not meet."""

    template = "could not be run by torchrun ({error}[: {reason}])"

    error: str  # the class of an exception
    reason: str | None = None


class UnlikeRank(Message):
    """A rank had other code, data or weights than rank 0."""

    template = "had other {what} in {rank} than in rank 0 (by their digests)"

    what: str
    rank: str


class OtherModes(Message):
    """A rank trained in other modes, or by another backend, than rank 0."""

    template = "trained in other modes in {rank} than in rank 0"

    rank: str


class FewMeasured(Message):
    """Some of several processes measured nothing."""

    template = "had {found} of {wanted} processes measure something (exit status {status})"

    found: int
    wanted: int
    status: int


class OthersMissing(Message):
    """Instances that train at the same time did not all come."""

    template = "waited {seconds:duration} for others that train at the same time; see their logs"

    seconds: float


class LostTester(Message):
    """The process that tests between epochs has ended, most likely for want of memory."""

    template = "lost the process that tests between epochs; it takes as much memory as the training"


class ForeignCompilerCache(Message):
    """Another user could put code into the folder from which torch.compile executes what it has made."""

    template = (
        "can't use torch.compile: another user can put code into {folder}; "
        "set TORCHINDUCTOR_CACHE_DIR to a folder of your own"
    )

    folder: str


class KernelTooLarge(Message):
    """The reference kernel could be killed for the memory that it takes."""

    template = (
        "can't time the reference kernel: it takes {needed:size}, more than half of the memory limit of {limit:size}"
    )

    needed: int  # bytes, as is the limit
    limit: int


class NotPublished(Message):
    """A file of Fashion-MNIST has other content than was published. Digests are shortened."""

    template = "not the published file: SHA-256 of the content is {found}…, expected {expected}…"

    found: str
    expected: str


class UnusableFile(Message):
    """A file of a data set can't be trained on."""

    template = "can't train on {file}: {problem}"

    file: str
    problem: Message


class NotAPng(Message):
    """A picture has another format."""

    template = "read an image that is not a PNG"


class OtherPng(Message):
    """A PNG is of a kind that the worker does not decode. ``filter`` is that of a line, if this is the reason."""

    template = "read a PNG that is not 8-bit RGB without interlace, with the filters 0 to 2[; it has filter {filter}]"

    filter: int | None = None


class DamagedPng(Message):
    """A PNG is damaged. ``position`` is where a chunk with another checksum begins, ``reason`` is zlib's."""

    template = "read a damaged PNG[: the checksum of its chunk at byte {position:d} differs][: {reason}]"

    position: int | None = None
    reason: str | None = None


class NotATarget(Message):
    """A quality target is not of the form METRIC=NUMBER."""

    template = "is not METRIC=NUMBER; write for example accuracy=0.85 or loss=0.4"


class NoTargetNumber(Message):
    """A quality target has no number."""

    template = "has no number behind the '='; write for example accuracy=0.85 or loss=0.4"


class TargetOutOfRange(Message):
    """A quality target's number is not above 0, or not finite."""

    template = "is out of range: {metric} must be a number above 0; write for example accuracy=0.85 or loss=0.4"

    metric: str
