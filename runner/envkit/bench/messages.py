"""Messages of measuring. A problem of a worker is a clause whose subject is the worker."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

START_AGAIN = "start it again"


class WorkerEnded(Message):
    """A worker failed without a word of its own. ``cause`` says what stopped it, if that is known."""

    template = "{failure}[; {cause}]"

    failure: Message
    cause: Message | None = None


class WorkerReported(Message):
    """A worker failed and reported the problem.

    ``failure`` is what the engine knows beyond that, and ``cause`` the limit that stopped it, if that is known.
    """

    template = "{problem}[; it {failure}][; {cause}]"

    problem: Message
    failure: Message | None = None
    cause: Message | None = None


class PassedOn(Note):
    """A user's command gets these variables of the caller in all arms. ``replaced`` are keys in lists."""

    template = (
        "passed on to baseline and profiles alike: {names:list}[; left out {replaced:list}, which a profile sets]"
    )

    names: tuple[str, ...]
    replaced: tuple[str, ...] = ()


class ArmsDropped(Note):
    """Others are faster than these; their time goes to the others."""

    template = "dropped after {blocks:count block}, as slower: {names}"

    blocks: int
    names: tuple[str, ...]


class ArmsOverMemory(Note):
    """The peak memory of these is above the limit; their time goes to the others."""

    template = "dropped after {blocks:count block}, as they need more memory than --max-memory allows: {names}"

    blocks: int
    names: tuple[str, ...]


class RacerFailed(Caution):
    """A profile leaves the race, as its worker failed."""

    template = "{arm} left the race: the worker {problem}"

    arm: str
    problem: Message


class RacerNotInEffect(Caution):
    """A profile leaves the race, as the ``setting`` was not in effect."""

    template = "{arm} left the race: {setting} was not in effect"

    arm: str
    setting: str


class BudgetTooShort(Message):
    """A verdict needs far more time than the budget. ``option`` is the one that gives the budget."""

    template = (
        "{option} {budget_s:g}s is too short: a verdict needs {blocks:count block}, about {takes} on this "
        "machine; give {option} {give}[, in a {job} job that is as long][, or continue with: {again}]"
    )

    option: str
    budget_s: float
    blocks: int
    takes: str  # as "2.5 minutes"
    give: str  # a value for the option
    job: str | None = None  # the scheduler whose job would end too early
    again: str | None = None  # a command


class BudgetBelowLeast(Message):
    """No machine could give a verdict within the budget."""

    template = (
        "{option} {budget_s:g}s is too short: a verdict needs {blocks:count block}, and each {worker} takes "
        "{least_s:g} s or more; give {option} {give} or more"
    )

    option: str
    budget_s: float
    blocks: int
    worker: str  # or the command
    least_s: float
    give: str


class VariableNotSet(Message):
    template = "--keep-env {name}: it is not set in your environment; set it, or leave it out"

    name: str


class HoldsRun(Message):
    template = "{file}: already holds a run; continue it with --resume {folder}, or give another folder"

    file: str
    folder: str  # as a shell reads it


class FolderNotWritable(Message):
    template = "{folder}: can't be created, because {there} is not a writable folder; give another with --output"

    folder: str
    there: str


class Interrupted(Message):
    """The user ended a run. ``command`` continues it, or ``fix`` is START_AGAIN."""

    template = "interrupted[; continue with: {command}][; {fix}]"

    command: str | None = None
    fix: str | None = None


class WorkerFailed(Message):
    template = "a worker failed; see failures"


class NotInEffect(Message):
    template = "not in effect: {arms}"

    arms: tuple[str, ...]


class TargetNotReached(Message):
    template = "a training did not reach its target"


class FolderTooLarge(Message):
    """A user's folder is too large to be copied for each start."""

    template = (
        "{folder}: too large to copy for each start: {files:count file} and {bytes:size}, mostly in {names}; "
        "give --link NAME for data that the training only reads, or --in-place to start it in the folder "
        "itself"
    )

    folder: str
    files: int
    bytes: int
    names: tuple[str, ...]


class FolderUnreadable(Message):
    template = "{folder}: each start gets a copy, and {path} can't be read: {why}; give --link NAME, or --in-place"

    folder: str
    path: str
    why: str


class NoSuchLink(Message):
    template = "--link {name}: there is no such file or folder in {folder}; give a path relative to that folder"

    name: str
    folder: str


class NoSuchProgram(Message):
    """A user's command has no program; ``there`` is a file of that name in the folder where it is to start."""

    template = (
        "{program}: no such command on the PATH[; for the file here write {there}]"
        "[; leave the quotes out: {words:command}]"
    )

    program: str
    there: str | None = None
    words: tuple[str, ...] | None = None  # a command line that was given as one word


class ProgramMissing(Message):
    """The file that a user's command starts, or that its Python is to run, is missing."""

    template = (
        "{program}: no such file in {folder}[; leave the quotes out: {words:command}]; start envkit where your "
        "training starts"
    )

    program: str
    folder: str
    words: tuple[str, ...] | None = None  # a command line that was given as one word


class ProgramNotExecutable(Message):
    template = "{program}: not executable; start it with its interpreter, or allow it: {command:command}"

    program: str
    command: tuple[str, ...]


class TooManyArms(Message):
    """A run has more arms, or comparisons, than a record may have."""

    template = (
        "{number:d} arms or comparisons are too many for one run, which can have {most:d}; measure them in several runs"
    )

    number: int
    most: int


# A run in progress. Ratios are speedups over the reference: above 1 is faster.


class InterimSpeedup(Note):
    """The interval of the latest look, from a confidence sequence; the report's own is narrower."""

    template = "{arm} {ratio:ratio}x (interim {low:ratio} to {high:ratio})"

    arm: str
    ratio: float
    low: float
    high: float


class InterimBest(Note):
    template = "best of {of}: {best}"

    of: int
    best: InterimSpeedup


class BlocksFit(Note):
    """How many blocks of a user's command the budget has room for, after one start of each arm."""

    template = "one run of each took {seconds:.0f} s in all: about {blocks:count block} fit into the budget"

    seconds: float
    blocks: int


class GoingOn(Note):
    """A verdict takes longer than the budget, and the run goes on until then."""

    template = (
        "one block takes {block_s:duration}: a verdict needs {blocks:count block}, about {takes} in all; "
        "continuing until then; Ctrl-C stops and reports what was measured"
    )

    block_s: float
    blocks: int
    takes: str  # as "2.5 minutes"


class SharedByCopies(Note):
    """Copies of a user's folder write elsewhere through links, and into its caches."""

    template = (
        "all copies of the folder share {names}: files that your training writes there stay, also for later starts"
    )

    names: tuple[str, ...]


class WritesIntoCopy(Note):
    """A user's command writes files into its working copy."""

    template = "each start writes {written} into its copy of the folder, which is removed afterwards"

    written: Message


class WritesIntoFolder(Caution):
    """A user's command writes files into its own folder (--in-place)."""

    template = (
        "each start writes {written}, into {folder}; a later start may continue from them, and then does other work"
    )

    written: Message
    folder: str


class Program(Note):
    """Another program that uses CPUs."""

    template = "{name} ({pid:d}) {cpus:.2g}"

    name: str
    pid: int
    cpus: float


class BesidePrograms(Caution):
    """Other programs use CPUs of the workers in nearly all blocks."""

    template = (
        "other programs use {cpus:.2g} of {of:g} CPUs during this run[: {programs:list}]; stop them, or the "
        "result holds only under that load"
    )

    cpus: float
    of: float
    programs: tuple[Program, ...] = ()


# What a block is, for those who see the word for the first time.
ONE_OF_EACH = "one sample of each"


class Disturbed(Caution):
    """Something outside of the run disturbs nearly all blocks."""

    template = "blocks are disturbed from outside ({reasons:lines}); the result holds only under that load"

    reasons: tuple[Message, ...]
