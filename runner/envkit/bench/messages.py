"""Messages of measuring. A problem of a worker is a clause whose subject is the worker."""

from __future__ import annotations

from envkit.messages import Message, Severity


class WorkerEnded(Message):
    """A worker failed without a word of its own. ``cause`` says what stopped it, if that is known."""

    code = "bench.worker-ended"
    template = "{failure}[; {cause}]"

    failure: Message
    cause: Message | None = None


class WorkerReported(Message):
    """A worker failed and reported the problem.

    ``failure`` is what the engine knows beyond that, and ``cause`` the limit that stopped it, if that is known.
    """

    code = "bench.worker-reported"
    template = "{problem}[; it {failure}][; {cause}]"

    problem: Message
    failure: Message | None = None
    cause: Message | None = None


class PassedOn(Message):
    """A user's command gets these variables of the caller in all arms. ``replaced`` are keys in lists."""

    code = "bench.passed-on"
    severity = Severity.NOTE
    template = (
        "passed on to baseline and profiles alike: {names:list}[; left out {replaced:list}, which a profile sets]"
    )

    names: tuple[str, ...]
    replaced: tuple[str, ...] = ()


class BudgetTooShort(Message):
    """A verdict needs far more time than the budget. ``option`` is the one that gives the budget."""

    code = "bench.budget-too-short"
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

    code = "bench.budget-below-least"
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
    code = "bench.variable-not-set"
    template = "--keep-env {name}: it is not set in your environment; set it, or leave it out"

    name: str


class HoldsRun(Message):
    code = "bench.holds-run"
    template = "{file}: already holds a run; continue it with --resume {folder}, or give another folder"

    file: str
    folder: str  # as a shell reads it


class FolderNotWritable(Message):
    code = "bench.folder-not-writable"
    template = "{folder}: can't be created, because {there} is not a writable folder; give another with --output"

    folder: str
    there: str


class Interrupted(Message):
    code = "bench.interrupted"
    template = "interrupted; continue with: {command}"

    command: str


class InterruptedForGood(Message):
    """A run that nothing goes on with: it is so short that it is begun anew."""

    code = "bench.interrupted-for-good"
    template = "interrupted; start it again"


class WorkerFailed(Message):
    code = "bench.worker-failed"
    template = "a worker failed; see failures"


class NotInEffect(Message):
    code = "bench.not-in-effect"
    template = "not in effect: {arms}"

    arms: tuple[str, ...]


class TargetNotReached(Message):
    code = "bench.target-not-reached"
    template = "a training did not reach its target"


class FolderTooLarge(Message):
    """A user's folder is too large to be copied for each start."""

    code = "bench.folder-too-large"
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
    code = "bench.folder-unreadable"
    template = "{folder}: each start gets a copy, and {path} can't be read: {why}; give --link NAME, or --in-place"

    folder: str
    path: str
    why: str


class NoSuchLink(Message):
    code = "bench.no-such-link"
    template = "--link {name}: there is no such file or folder in {folder}; give a path relative to that folder"

    name: str
    folder: str


class NoSuchProgram(Message):
    """A user's command has no program; ``there`` is a file of that name in the folder where it is to start."""

    code = "bench.no-such-program"
    template = (
        "{program}: no such command on the PATH[; for the file here write {there}]"
        "[; leave the quotes out: {words:command}]"
    )

    program: str
    there: str | None = None
    words: tuple[str, ...] | None = None  # a command line that was given as one word


class ProgramMissing(Message):
    """The file that a user's command starts, or that its Python is to run, is missing."""

    code = "bench.program-missing"
    template = (
        "{program}: no such file in {folder}[; leave the quotes out: {words:command}]; start envkit where your "
        "training starts"
    )

    program: str
    folder: str
    words: tuple[str, ...] | None = None  # a command line that was given as one word


class ProgramNotExecutable(Message):
    code = "bench.program-not-executable"
    template = "{program}: not executable; start it with its interpreter, or allow it: {command:command}"

    program: str
    command: tuple[str, ...]


# A run in progress. Ratios are speedups over the reference: above 1 is faster.


class InterimSpeedup(Message):
    """A 95% interval that decides nothing: the report's own is wider, as it pays for interim analyses."""

    code = "bench.interim-speedup"
    severity = Severity.NOTE
    template = "{arm} {ratio:ratio}x (interim {low:ratio} to {high:ratio})"

    arm: str
    ratio: float
    low: float
    high: float


class InterimBest(Message):
    code = "bench.interim-best"
    severity = Severity.NOTE
    template = "best of {of}: {best}"

    of: int
    best: InterimSpeedup


class InterimSpeedups(Message):
    code = "bench.interim-speedups"
    severity = Severity.NOTE
    template = "{arms:lines}"

    arms: tuple[InterimSpeedup, ...]


class BlocksFit(Message):
    """How many blocks of a user's command the budget has room for, after one start of each arm."""

    code = "bench.blocks-fit"
    severity = Severity.NOTE
    template = "one run of each took {seconds:.0f} s in all: about {blocks:count block} fit into the budget"

    seconds: float
    blocks: int


class GoingOn(Message):
    """A verdict takes longer than the budget, and the run goes on until then."""

    code = "bench.going-on"
    severity = Severity.NOTE
    template = (
        "one block takes {block_s:duration}: a verdict needs {blocks:count block}, about {takes} in all; "
        "continuing until then; Ctrl-C stops and reports what was measured"
    )

    block_s: float
    blocks: int
    takes: str  # as "2.5 minutes"


class SharedByCopies(Message):
    """Copies of a user's folder write elsewhere through links, and into its caches."""

    code = "bench.shared-by-copies"
    severity = Severity.NOTE
    template = (
        "all copies of the folder share {names}: files that your training writes there stay, also for later starts"
    )

    names: tuple[str, ...]


class WritesIntoCopy(Message):
    """A user's command writes files into its working copy."""

    code = "bench.writes-into-copy"
    severity = Severity.NOTE
    template = "each start writes {written} into its copy of the folder, which is removed afterwards"

    written: Message


class WritesIntoFolder(Message):
    """A user's command writes files into its own folder (--in-place)."""

    code = "bench.writes-into-folder"
    severity = Severity.WARNING
    template = (
        "each start writes {written}, into {folder}; a later start may continue from them, and then does other work"
    )

    written: Message
    folder: str


class Program(Message):
    """Another program that uses CPUs."""

    code = "bench.program"
    severity = Severity.NOTE
    template = "{name} ({pid:d}) {cpus:.2g}"

    name: str
    pid: int
    cpus: float


class BesidePrograms(Message):
    """Other programs use CPUs of the workers in nearly all blocks."""

    code = "bench.beside-programs"
    severity = Severity.WARNING
    template = (
        "other programs use {cpus:.2g} of {of:g} CPUs during this run[: {programs:list}]; stop them, or the "
        "result holds only under that load"
    )

    cpus: float
    of: float
    programs: tuple[Program, ...] = ()


# What a block is, for those who see the word for the first time.
ONE_OF_EACH = "one sample of each"


class Disturbed(Message):
    """Something outside of the run disturbs nearly all blocks."""

    code = "bench.disturbed"
    severity = Severity.WARNING
    template = "blocks are disturbed from outside ({reasons:lines}); the result holds only under that load"

    reasons: tuple[Message, ...]
