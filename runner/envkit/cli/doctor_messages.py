"""Messages of ``envkit doctor``: what it refuses, and how a watched command ended."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

NOTHING_FOUND = "nothing found"

EXIT_STATUSES = "exit status: 0 found no problem that must be fixed first, 1 found one, 2 bad input, 130 interrupted"


class CommandWithoutDashes(Message):
    """A command was given without ``--`` before it."""

    template = "doctor: '{word}': a command to watch comes after --"

    word: str


class NoCommandToWatch(Message):
    """No word follows ``--``."""

    template = "doctor --: name the command to watch, for example envkit doctor -- python train.py"


class DoctorTrialFailed(Message):
    """The training that a bug report describes failed. ``printed`` is its last line."""

    template = "doctor: a worker {failure}[: {printed}]"

    failure: Message
    printed: str | None = None


class CantStart(Message):
    """The system does not start a command that is to be watched."""

    template = "doctor -- {program}: can't be started: {reason}"

    program: str
    reason: str


class WatchedFailed(Message):
    """A watched command ended by itself, and failed. ``shm`` is how many bytes /dev/shm has, if these are few."""

    template = (
        "doctor -- {program}: it ended with status {status:d}; it must run for a while to be watched[; DataLoader "
        "workers pass batches through /dev/shm, which has only {shm:size}]"
    )

    program: str
    status: int
    shm: int | None = None


class StoppedWatching(Note):
    """doctor stopped the command that it watched, as it was to."""

    template = "stopped '{program}' after {seconds:g} s of watching (--watch)"

    program: str
    seconds: float


class WatchedShortly(Caution):
    """A watched command ended before much could be seen."""

    template = "'{program}' ended after {seconds:.1f} s: too short to observe much"

    program: str
    seconds: float
