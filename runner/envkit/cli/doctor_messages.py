"""Messages of ``envkit doctor``: what it refuses, and how a watched command ended."""

from __future__ import annotations

from envkit.messages import Message, Severity

EXIT_STATUSES = "exit status: 0 found no problem that must be fixed first, 1 found one, 2 bad input, 130 interrupted"


class NotForIssue(Message):
    """``--for-issue`` watches no command."""

    code = "cli.not-for-issue"
    template = "{option} has no effect with --for-issue, which looks at one short training; leave it out"

    option: str


class NotForWatched(Message):
    """A watched command runs on this machine, in no engine."""

    code = "cli.not-for-watched"
    template = (
        "doctor: {option} has no effect on a command after --, which is watched as it runs on this machine; "
        "leave it out"
    )

    option: str


class CommandWithoutDashes(Message):
    """A command was given without ``--`` before it."""

    code = "cli.command-without-dashes"
    template = "doctor: '{word}': a command to watch comes after --"

    word: str


class NothingToWatch(Message):
    """``--watch`` was given without a command."""

    code = "cli.nothing-to-watch"
    template = "doctor: --watch has no effect without a command after --; leave it out"


class NoCommandToWatch(Message):
    """No word follows ``--``."""

    code = "cli.no-command-to-watch"
    template = "doctor --: name the command to watch, for example envkit doctor -- python train.py"


class TrialFailed(Message):
    """The training that a bug report describes failed. ``printed`` is its last line."""

    code = "cli.doctor-trial-failed"
    template = "doctor: a worker {failure}[: {printed}]"

    failure: Message
    printed: str | None = None


class CantStart(Message):
    """The system does not start a command that is to be watched."""

    code = "cli.cant-start"
    template = "doctor -- {program}: can't be started: {reason}"

    program: str
    reason: str


class WatchedFailed(Message):
    """A watched command ended by itself, and failed. ``shm`` is how many bytes /dev/shm has, if these are few."""

    code = "cli.watched-failed"
    template = (
        "doctor -- {program}: it ended with status {status:d}; it must run for a while to be watched[; DataLoader "
        "workers pass batches through /dev/shm, which has only {shm:size}]"
    )

    program: str
    status: int
    shm: int | None = None


class StoppedWatching(Message):
    """doctor stopped the command that it watched, as it was to."""

    code = "cli.stopped-watching"
    severity = Severity.NOTE
    template = "stopped '{program}' after {seconds:g} s of watching (--watch)"

    program: str
    seconds: float


class WatchedShortly(Message):
    """A watched command ended before much could be seen."""

    code = "cli.watched-shortly"
    severity = Severity.WARNING
    template = "'{program}' ended after {seconds:.1f} s: too short to observe much"

    program: str
    seconds: float


class NothingFound(Message):
    """doctor found nothing."""

    code = "cli.doctor-found-nothing"
    severity = Severity.NOTE
    template = "nothing found"
