"""Messages of what runs: progress, which is a line now and then if stderr is no terminal; locks and folders."""

from __future__ import annotations

from envkit.messages import Message, Note

NO_LOCK = "it is not a lock file"


class WorkerDone(Note):
    """A worker ended. ``ms`` is the mean time of a ``step``."""

    template = "{stage}, {arm}: {ms:.2f} ms per {step}"

    stage: str
    arm: str
    ms: float
    step: str


class StageDone(Note):
    """A block is complete. ``left`` is the time until the end, as ``1:05``."""

    template = "{stage}[: {standing}][; about {left} left]"

    stage: str
    standing: Message | None = None
    left: str | None = None


class UnusableLock(Message):
    """The file of the machine's lock can't be opened, or is something else (NO_LOCK)."""

    template = "{file}: can't be used as a lock: {reason}; remove it, or set TMPDIR"

    file: str
    reason: str


class Locked(Message):
    """Another measurement holds this machine."""

    template = (
        "another measurement[ of user {user}] runs on this machine[ (process {process})]; "
        "wait for it, or it spoils both[; if that process of {user} measures nothing, set TMPDIR to another folder]"
    )

    process: str | None  # its number
    user: str | None = None  # who runs it, if that is another user


class NoLocks(Message):
    """A file system does not know locks."""

    template = "{file}: can't be locked: {reason}; set TMPDIR to a folder on this machine's own disk"

    file: str
    reason: str


class NotMade(Message):
    """A file or a folder can't be made. ``option`` names another."""

    template = "{path}: can't be made: {reason}[; give another {option}]"

    path: str
    reason: str
    option: str | None = None
