"""Messages of the commands that show results: baseline, export, fleet, history and report."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note

ONE_FOLDER, TWO_FOLDERS = "one folder", "two folders, or reports"

# --- baseline ---


class NoRatio(Message):
    """Two baselines are incomparable: their absolute times differ by the reference kernel, and neither has ratios."""

    template = (
        "the reference kernel changed with Python, the C library or envkit, and there is no ratio to compare "
        "instead, because only the reference was measured"
    )


class BaselineSaved(Note):
    """The content of a baseline that was saved."""

    template = "{name}: {arms:list}, {blocks:count block}, measured {measured}"

    name: str
    arms: tuple[str, ...]
    blocks: int
    measured: str


class BaselineIsSynthetic(Note):
    """The images of a baseline were generated."""

    template = "measured with synthetic data; compare it only with runs on synthetic data"


class BaselineFile(Advice):
    """The file of a baseline, and what to do with it."""

    template = "{file} (commit it; later: envkit baseline check {name} PROFILE)"

    file: str
    name: str


class NoBaselines(Note):
    """A folder holds no baselines."""

    template = "no baselines in {folder}; save one with: envkit baseline save NAME --from DIR"

    folder: str


class ThenCompare(Advice):
    """A check was interrupted: what to do once its run is complete."""

    template = "and then compare: envkit baseline check {name} --against that folder"

    name: str


# --- export ---


class NotForTerminal(Message):
    """A binary format would go to the terminal."""

    template = "--format {format} is not for a terminal: name a file with --output"

    format: str


class HoldsNoRuns(Message):
    """A folder is no run, and holds none."""

    template = "{folder}: holds no runs; give the folder of a run, or one that holds runs"

    folder: str


class NothingMeasured(Note):
    """An export has no rows."""

    template = "{folder}: no worker has ended a sample, so there is nothing to export"

    folder: str


# --- fleet ---


class SeveralJudges(Message):
    """Several profiles are measured, and none was chosen to judge nodes by."""

    template = "fleet judges nodes by one profile: choose among {profiles:list} with --profile"

    profiles: tuple[str, ...]


class JudgeNotMeasured(Message):
    """--profile names a profile that is not measured."""

    template = "--profile {profile}: it is not measured; choose among {measured:list}"

    profile: str
    measured: tuple[str, ...]


class FleetTakes(Message):
    """``envkit fleet report`` or ``diff`` was given other folders than it takes."""

    template = "fleet {action} takes {what}; give: envkit fleet {action} {words}"

    action: str
    what: str  # ONE_FOLDER or TWO_FOLDERS
    words: str


class SameMeasurements(Message):
    """Two folders hold the same measurements."""

    template = "fleet diff: {then} and {now} are of the same measurements; give another one"

    then: str
    now: str


class BackInTime(Caution):
    """The first of two folders is the newer one."""

    template = "warning: {then} was measured after {now}: swap them to see what became slower"

    then: str
    now: str


class ReportNotKept(Caution):
    """The summary of a fleet's report can't be written beside the records."""

    template = "{problem}; later reports can't be compared with this one"

    problem: Message


class NoFleetReport(Message):
    """A submission ended, and its report failed."""

    template = "no report: {problem}"

    problem: Message


# --- history ---


class NoRuns(Note):
    """A folder holds no runs."""

    template = "no runs in {folder}; measure one with: envkit bench PROFILE"

    folder: str


class NoSuchRuns(Note):
    """The options match no run."""

    template = "no run in {folder} matches these options ({runs:count run} looked at)"

    folder: str
    runs: int


class RunsIn(Note):
    """The heading of a list of runs."""

    template = "runs in {folder}, the latest first"

    folder: str


class UnreadRun(Caution):
    """A run can't be read."""

    template = "not read: {name}: {problem}"

    name: str
    problem: Message


class NothingComparedWith(Note):
    """A run measured the reference alone. ``node`` is where, if there are several."""

    template = "nothing to compare with[, {node}]"

    node: str | None = None


class MoreNodes(Note):
    """A run has more nodes than are listed."""

    template = "and {nodes:count more node}"

    nodes: int


class RunFacts(Note):
    """Facts of a run, below its results. Its arms are compared with ``reference``, or with ``whole``."""

    template = (
        "[{nodes:count node}, ]{engines:list}, {trained}, {blocks:count block}[, against {reference}]"
        "[, those without a setting against {whole}], {ended:list}; {folder}"
    )

    engines: tuple[str, ...]
    trained: str
    blocks: int
    ended: tuple[str, ...]  # of each node, different ones
    folder: str
    nodes: int | None = None
    reference: str | None = None
    whole: str | None = None


class NotEnded(Note):
    """A record has no end."""

    template = "runs, or was killed"


# --- report ---


class MarkdownPrints(Message):
    """--markdown without a file prints, as --json and --details do."""

    template = "--markdown prints, and so do --json and --details: leave them out, or give --markdown a FILE"


class OfFleet(Message):
    """The folder is a fleet's."""

    template = "{folder}: is a fleet's; report on it with: {instead:command}"

    folder: str
    instead: tuple[str, ...]


class NothingMeasuredYet(Message):
    """No node of a submission has measured yet."""

    template = "{folder}: nothing was measured yet; follow it with: {follow:command}"

    folder: str
    follow: tuple[str, ...]


class OfOneRun(Message):
    """An option is for one run, and the folder has several."""

    template = "{option}: {folder} has {runs:count run}; give the folder of one, as {example}"

    option: str
    folder: str
    runs: int
    example: str


class NothingToDraw(Message):
    """A run without a sample has no picture."""

    template = "--png {file}: nothing can be drawn: no sample was measured"

    file: str
