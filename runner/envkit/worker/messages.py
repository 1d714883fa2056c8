"""Messages of the worker, which prints them as JSON. Each is a clause whose subject is the worker."""

from __future__ import annotations

from envkit.messages import Message


class ProcessKilled(Message):
    """A signal ended one of the worker's processes."""

    code = "worker.process-killed"
    template = "lost {process}, which was killed by signal {signal}"

    process: str  # as "rank 1 on node2"
    signal: str


class ProcessEnded(Message):
    """One of the worker's processes ended with a status other than 0."""

    code = "worker.process-ended"
    template = "lost {process}, which ended with exit status {status}"

    process: str
    status: int


class NoRendezvous(Message):
    """A worker on several nodes was started without the address of their meeting."""

    code = "worker.no-rendezvous"
    template = "was not told where nodes meet (--rendezvous HOST:PORT)"


class TorchrunFailed(Message):
    """torchrun itself failed, for example because nodes did not meet."""

    code = "worker.torchrun-failed"
    template = "could not be run by torchrun ({error}[: {reason}])"

    error: str  # the class of an exception
    reason: str | None = None


class UnlikeRank(Message):
    """A rank had other code, data or weights than rank 0."""

    code = "worker.unlike-rank"
    template = "had other {what} in {rank} than in rank 0 (by their digests)"

    what: str
    rank: str


class OtherModes(Message):
    """A rank trained in other modes, or by another backend, than rank 0."""

    code = "worker.other-modes"
    template = "trained in other modes in {rank} than in rank 0"

    rank: str


class FewMeasured(Message):
    """Some of several processes measured nothing."""

    code = "worker.few-measured"
    template = "had {found} of {wanted} processes measure something (exit status {status})"

    found: int
    wanted: int
    status: int
