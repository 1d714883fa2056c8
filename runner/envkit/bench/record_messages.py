"""Messages about records: files that can't be used, and runs that can't go on."""

from __future__ import annotations

from envkit.messages import Message, Note

# Why a run ended. Its record, JSON documents and reports have these words.
BUDGET_USED_UP = "budget used up"
BLOCKS_MEASURED = "planned blocks measured"
WORKER_FAILED = "a worker failed"
NOT_IN_EFFECT = "not in effect"
BUDGET_TOO_SHORT = "the budget is too short"
GIVE_RUN = "give the folder of a run"
# Stands for the value of a variable of the caller's.
CALLERS = "the caller's value"

# How a message names the compared documents of a run that have no name of their own.
ENVIRONMENTS, KEPT_VARIABLES = "environments", "kept variables"


class UnusableRecord(Message):
    """A record can't be read. ``problem`` is a clause whose subject is the file."""

    template = "{file}[:{line:d}]: {problem}"

    file: str
    problem: Message
    line: int | None = None


class ResultsUnwritable(Message):
    template = "{folder}: results can't be written there: {reason}; give another folder with --output"

    folder: str
    reason: Message


class NotReopened(Message):
    template = "--resume {folder}: {file} can't be opened: {reason}"

    folder: str
    file: str
    reason: Message


class OtherRunner(Message):
    """Another process measures into the folder."""

    template = "{file}: another envkit process is writing to it; wait for it, or give another folder"

    file: str


class NotLockable(Message):
    """A file system has no locks, as some network file systems."""

    template = "{file}: can't be locked against a second envkit process: {reason}; give a folder on another file system"

    file: str
    reason: str


# What is wrong with a record.


class NoWholeLine(Message):
    template = "is not the record of a run: it has no whole line; start the run again"


class NoSchema(Message):
    template = "is not the record of a run (its first line has no number as its schema)"


class DamagedLine(Message):
    template = "damaged line; remove it to read the rest"


class OfSearch(Message):
    """A record is that of a search, which measures its result in a folder of its own."""

    template = "is the record of a search by envkit tune; what it found was measured in {folder}"

    folder: str


class OfSubmission(Message):
    template = "is the record of a submission; give the folder of a node's run, beside it"


class OtherKind(Message):
    """A record begins with another event than ``kind``: run, tune or submit."""

    template = "is not the record of a {kind} (its first line must be the event '{kind}')"

    kind: str


class AfterEnd(Message):
    template = "a {event} follows the end of the run: lines are out of order; sort them by time"

    event: str  # sample or trial


class AfterBlock(Message):
    template = "a {event} follows those of block {block:d}: lines are out of order; sort them by time"

    event: str  # sample or trial
    block: int  # from 1


class SampleTwice(Message):
    template = "a second sample of '{arm}' in block {block:d}, after that on line {line:d}; remove one of them"

    arm: str
    block: int  # from 1
    line: int


class EventLacks(Message):
    template = "an event lacks {key}; the record can't be used"

    key: str  # as Python's KeyError writes it


class NotUnderstood(Message):
    """A record has a value that no run writes. ``reason`` is a message, or the text of Python's exception."""

    template = "is not understood ({reason}); the record can't be used"

    reason: Message


class NoSeconds(Message):
    template = "{key} is {value}, and must be a number of seconds"

    key: str
    value: str


class NoWholeNumber(Message):
    template = "{key} is {value}, and must be a whole number from {least:d} to {most:d}"

    key: str
    value: str
    least: int
    most: int


# Going on with a run.


class SealMissing(Message):
    template = "lacks your seal (it began where you could have no key, or was edited)"


class SealOfAnother(Message):
    template = "lacks your seal (another user or machine made it, or it was edited)"


class CommandNeeded(Message):
    """A record without this user's seal can't say what to run. ``again`` is the command."""

    template = (
        "--resume {folder}: the record {problem}, so it can't say what to run; give the whole command again: {again}"
    )

    folder: str
    problem: Message
    again: str


class Difference(Note):
    """A value of a record differs from that of the command line, or of this machine."""

    template = "{name} was {was} and is now {now}"

    name: str
    was: str
    now: str


class OtherCommand(Message):
    """The command differs from that of the record, in ``more`` values than are named."""

    template = (
        "--resume {folder}: the record [{seal}, and ]differs from the command that was given: {differences:lines}"
        "[; and {more} more]; give the record's own command, or start a new run"
    )

    folder: str
    differences: tuple[Message, ...]
    more: int | None = None
    seal: Message | None = None


class VariableGone(Message):
    template = (
        "--resume {folder}: {name}: the run keeps it, and it is not set in your environment; "
        "set it as it was when the run began"
    )

    folder: str
    name: str


class VariableChanged(Message):
    template = (
        "--resume {folder}: {name} has another value in your environment than when the run began: the "
        "samples can't be compared; set it as it was, or start a new run"
    )

    folder: str
    name: str


class OtherEngines(Message):
    template = "--resume {folder}: its engines were {was}, and are now {now}; start a new run"

    folder: str
    was: str
    now: str


class ProgramMoved(Message):
    """The first word of a user's command is another file than when the run began."""

    template = (
        "--resume {folder}: {word} was {was} and is {now} on this PATH: the samples can't be compared; "
        "resume with the original program, or start a new run"
    )

    folder: str
    word: str
    was: str
    now: str


class MachineChanged(Message):
    """A fact about the machine, its image or its libraries differs from that of the record."""

    template = "--resume {folder}: {difference}: the samples can't be compared; start a new run"

    folder: str
    difference: Difference
