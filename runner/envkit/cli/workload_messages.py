"""Messages of a user's own training command: its options, and the file that keeps it."""

from __future__ import annotations

from envkit.messages import Message, Note

GIVE_PATTERN = "give a regular expression, or a path such as $.step_time"
SAY_COMMAND = "say what starts the training, as command: python train.py"

QUOTE_IT, SINGLE_QUOTES = "quote it", "single quotes"

# What a workload file is called in messages about YAML.
FILE = "a workload file"


class NoCommand(Message):
    """``--`` was the last word."""

    template = "no command follows --; name your training, for example: envkit {command}[ {profile}] -- python train.py"

    command: str
    profile: str | None


class TwoTrainings(Message):
    """A workload and a command were given."""

    template = "--workload {workload} and the command after -- both name what to train; leave one out"

    workload: str


class StartsCommand(Note):
    """A file, and not the command line, names the command that is about to be started."""

    template = "{file} starts, in {folder}: {argv:command}"

    file: str
    folder: str
    argv: tuple[str, ...]


class KeyOfFile(Message):
    """A clause that follows an option: the workload file says this."""

    template = "{option} is a key of {file}; write it there"

    option: str
    file: str


class NotOfCommand(Message):
    """A clause that follows an option of the kit's own workloads."""

    template = "{option} has no effect on your own command; leave it out, and use {instead}"

    option: str
    instead: str


class BadLoader(Message):
    """The name of a workload says nothing that DataLoader could be given."""

    template = (
        "'{given}' is not a loader workload; write them as loader-w4-b64-p2 or, with epochs that end (fork, "
        "spawn or forkserver; 1 worker or more, batches of 80 images or fewer), "
        "loader-w2-b32-p2-spawn-persistent"
    )

    given: str


class UnknownWorkload(Message):
    """The kit has no workload of this name."""

    template = (
        "no workload '{workload}'[ (did you mean '{suggestion}'?)]; choose one of: {known:list}, and a file "
        "like mine.yaml"
    )

    workload: str
    known: tuple[str, ...]
    suggestion: str | None = None


class BadMetric(Message):
    """A metric can't be read. ``problem`` is a clause whose subject is the metric."""

    template = "{option} '{metric}' {problem}"

    option: str  # or the key of a workload file, with a colon
    metric: str
    problem: Message


class IsEmpty(Message):
    """A value is empty."""

    template = "is empty; {fix}"

    fix: str  # GIVE_PATTERN or SAY_COMMAND


class OfUnit(Message):
    """A clause that follows a metric: the text around its number names another unit than seconds."""

    template = (
        "looks like a number of {unit}, and would be taken for seconds; give the unit {unit}, or s if that is right"
    )

    unit: str


class OfRate(Message):
    """A clause that follows a metric: the text around its number names a rate."""

    template = "looks like a rate, and would be taken for seconds; give the unit {unit}, or s if that is right"

    unit: str


class UnitOfClock(Message):
    """A clause that follows a metric: it times lines by the clock, and a unit was given."""

    template = "has no group that could be a number with a unit; put one around the number, or leave the unit out"


class NoFolder(Message):
    """A workload file names a folder that is not there."""

    template = "folder: there is no folder {folder}; the path is relative to this file"

    folder: str


class KeysExclude(Message):
    """Two keys of a workload file exclude each other."""

    template = "'{key}' has no effect with '{other}'; remove one of them"

    key: str
    other: str


class NoWarmupLines(Message):
    """A workload file counts the first step of an optimizer, which has no beginning."""

    template = "'warmup_lines' must be 1 or more with 'optimizer_steps': the beginning of a first step is unknown"


class OpenQuote(Message):
    """A quote or an escape in a command does not end. ``reason`` is what Python says."""

    template = "{reason}; close it"

    reason: str


class SeveralLines(Message):
    """A command has a line break that only a shell understands."""

    template = (
        "a line break ends a shell command, and this command runs without a shell; use bash -c '…', or end "
        "the line with a '\\'"
    )


class ForAShell(Message):
    """A command, which runs without a shell, has what only a shell replaces. ``quoting`` is how it is kept as it is."""

    template = "'{part}' needs a shell, and this command runs without one; use bash -c '…', or {quoting}"

    part: str
    quoting: str


class NotWatched(Message):
    """A training can't be watched. ``problem`` is a clause whose subject is the worker."""

    template = "advise -- {program}: the worker {problem}"

    program: str
    problem: Message


class TrialFailed(Message):
    """An arm's worker failed when it was tried once. ``stderr`` is the last line that it printed."""

    template = "its worker {problem}[: {stderr}]"

    problem: Message
    stderr: str | None = None


class TrialNotInEffect(Message):
    """A setting of an arm was not in effect when it was tried once."""

    template = "it is not in effect: {key}: expected {expected}, {seen}"

    key: str
    expected: str
    seen: str


# What takes the place of an option that has no effect on a command.
OPTIONS_OF_COMMAND = "the command's own options"
TORCHRUN = "torchrun in that command"
