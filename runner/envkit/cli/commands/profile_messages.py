"""Messages of the commands that show profiles and variables: env, explain, profiles and show."""

from __future__ import annotations

from envkit.messages import Message, Severity

PROFILE_COLUMNS = ("profile", "what it does")

# --- env ---


class NeedsPathsInImage(Message):
    """A format is for inside an image, and no image was named."""

    code = "cli.needs-paths-in-image"
    template = (
        "profile '{profile}' needs {needed:list}, and --format {format} needs the paths inside an image: "
        "add --engine docker with --image, apptainer with --sif, or enroot with --sqsh"
    )

    profile: str
    needed: tuple[str, ...]
    format: str


class NotInEncoding(Message):
    """A character of the text is not in the locale's encoding."""

    code = "cli.not-in-encoding"
    template = "profile '{profile}': {characters} can't be written in {encoding}; take it out, or use a UTF-8 locale"

    profile: str
    characters: str
    encoding: str


class Unset(Message):
    """The text unsets variables of the shell."""

    code = "cli.unset"
    severity = Severity.NOTE
    template = "unset, because it could change the outcome: {names:list}; set again what you need"

    names: tuple[str, ...]


class PreloadReplaced(Message):
    """The text replaces libraries that the shell preloads."""

    code = "cli.preload-replaced"
    severity = Severity.NOTE
    template = "{variable}={value} is replaced by the profile's own; add again what you need of it"

    variable: str
    value: str


class ListJoined(Message):
    """The shell has settings in a list that the profile sets too. ``replaced`` are keys of those that were left out."""

    code = "cli.list-joined"
    severity = Severity.NOTE
    template = (
        "{variable} also had settings in your shell[; joined with the profile's: {kept:list}]"
        "[; left out, as a profile sets them: {replaced:list}]"
    )

    variable: str
    kept: tuple[str, ...]
    replaced: tuple[str, ...]


class MemoryNotWritten(Message):
    """--memory is no part of the text."""

    code = "cli.memory-not-written"
    severity = Severity.NOTE
    template = "--memory {memory} can't be written in this format; give the limit where you start the command"

    memory: str


class PathsInImage(Message):
    """The text has paths that exist in an image."""

    code = "cli.paths-in-image"
    severity = Severity.NOTE
    template = "the preloaded libraries' paths are those inside the image ({image})"

    image: str


class PathsOfMachine(Message):
    """The text has paths that exist on this machine."""

    code = "cli.paths-of-machine"
    severity = Severity.NOTE
    template = "the preloaded libraries' paths are this machine's; for a container add --engine docker --image NAME"


# --- explain ---


class UnknownVariable(Message):
    """The catalogue has no such variable."""

    code = "cli.unknown-variable"
    template = "no variable '{name}' in the catalogue[ (did you mean '{suggestion}'?)]"

    name: str
    suggestion: str | None = None


class Invisible(Message):
    """Nothing shows the value that a library uses."""

    code = "cli.invisible"
    severity = Severity.NOTE
    template = "can't be seen: {reason}"

    reason: str


class NobodyReads(Message):
    """No library of the image reads the variable."""

    code = "cli.nobody-reads"
    severity = Severity.NOTE
    template = "nothing in this image reads it"


class NotLookedAt(Message):
    """No worker was started to ask it."""

    code = "cli.not-looked-at"
    severity = Severity.NOTE
    template = "not checked: {problem}"

    problem: Message


class WorkerTellsNothing(Message):
    """The worker that was asked failed. The clause's subject is the worker."""

    code = "cli.worker-tells-nothing"
    severity = Severity.NOTE
    template = "unknown: the worker {failure}"

    failure: Message


class WorkersAnswer(Message):
    """A worker with nothing set told the value."""

    code = "cli.workers-answer"
    severity = Severity.NOTE
    template = "a worker's own answer, with nothing set"


class PreloadedAnswer(Message):
    """A worker with a library preloaded told the value."""

    code = "cli.preloaded-answer"
    severity = Severity.NOTE
    template = "a worker's own answer, with {library} preloaded"

    library: str


class OnlyKeysSet(Message):
    """A library lists only the keys that are set."""

    code = "cli.only-keys-set"
    severity = Severity.NOTE
    template = "{library} reports only keys that are set"

    library: str


class NotReported(Message):
    """The worker's answer does not have the value."""

    code = "cli.not-reported"
    severity = Severity.NOTE
    template = "{answer}: the value is not in it"

    answer: Message


class ReadBy(Message):
    """Which libraries read a variable, each with its versions if not all do."""

    code = "cli.read-by"
    severity = Severity.NOTE
    template = "{libraries:list} (in this image: {present:list})"

    libraries: tuple[str, ...]
    present: tuple[str, ...]  # or "none"


class NotInShell(Message):
    """The variable is not set in the caller's environment."""

    code = "cli.not-in-shell"
    severity = Severity.NOTE
    template = "not set in your shell"


class KeptFromWorkers(Message):
    """Workers start without the caller's value."""

    code = "cli.kept-from-workers"
    severity = Severity.NOTE
    template = "{value} in your shell; workers start without it"

    value: str


class KeptFromOwnWorkloads(Message):
    """Only a user's command starts with the caller's value."""

    code = "cli.kept-from-own-workloads"
    severity = Severity.NOTE
    template = "{value} in your shell; workers start without it, but your own commands get it"

    value: str


class Inherited(Message):
    """Workers on this machine start with the caller's value."""

    code = "cli.inherited"
    severity = Severity.NOTE
    template = "{value} in your shell; local workers inherit it"

    value: str


class KeyRow(Message):
    """One key of a variable that holds several, what it takes, and what it is ``here``."""

    code = "cli.key-row"
    severity = Severity.NOTE
    template = "{key}: {allowed} (default {default}[, here {here}][, since version {since}])"

    key: str
    allowed: Message
    default: str
    here: str | None = None
    since: str | None = None


class NotObservable(Message):
    """No evidence shows what the variable does."""

    code = "cli.not-observable"
    severity = Severity.NOTE
    template = "not observable: {reason}"

    reason: str


# --- profiles and show ---


class OfPlace(Message):
    """The heading of profiles that are not shipped."""

    code = "cli.of-place"
    severity = Severity.NOTE
    template = "{kind} profiles ({folder})"

    kind: str
    folder: str


class NotForThisMachine(Message):
    """The heading of profiles whose needs this machine does not meet."""

    code = "cli.not-for-this-machine"
    severity = Severity.NOTE
    template = "do not apply here: {reason}"

    reason: str


class RanksOfProfile(Message):
    """A profile is for several ranks, and the list below is for one."""

    code = "cli.ranks-of-profile"
    severity = Severity.NOTE
    template = "{ranks}; each has the settings below"

    ranks: int
