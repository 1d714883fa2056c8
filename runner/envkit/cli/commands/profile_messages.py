"""Messages of the commands that show profiles and variables: env, explain, profiles and show."""

from __future__ import annotations

from envkit.messages import Message, Note

# Who gets a variable of the caller's shell.
NO_WORKER = "workers start without it"
NO_WORKLOAD = "workers start without it, but your own commands get it"
LOCAL_WORKERS = "local workers inherit it"

PROFILE_COLUMNS = ("profile", "what it does")

# --- env ---


class NeedsPathsInImage(Message):
    """A format is for inside an image, and no image was named."""

    template = (
        "profile '{profile}' needs {needed:list}, and --format {format} needs the paths inside an image: "
        "add --engine docker with --image, apptainer with --sif, or enroot with --sqsh"
    )

    profile: str
    needed: tuple[str, ...]
    format: str


class NotInEncoding(Message):
    """A character of the text is not in the locale's encoding."""

    template = "profile '{profile}': {characters} can't be written in {encoding}; take it out, or use a UTF-8 locale"

    profile: str
    characters: str
    encoding: str


class Unset(Note):
    """The text unsets variables of the shell."""

    template = "unset, because it could change the outcome: {names:list}; set again what you need"

    names: tuple[str, ...]


class PreloadReplaced(Note):
    """The text replaces libraries that the shell preloads."""

    template = "{variable}={value} is replaced by the profile's own; add again what you need of it"

    variable: str
    value: str


class ListJoined(Note):
    """The shell has settings in a list that the profile sets too. ``replaced`` are keys of those that were left out."""

    template = (
        "{variable} also had settings in your shell[; joined with the profile's: {kept:list}]"
        "[; left out, as a profile sets them: {replaced:list}]"
    )

    variable: str
    kept: tuple[str, ...]
    replaced: tuple[str, ...]


class MemoryNotWritten(Note):
    """--memory is no part of the text."""

    template = "--memory {memory} can't be written in this format; give the limit where you start the command"

    memory: str


class PathsInImage(Note):
    """The text has paths that exist in an image."""

    template = "the preloaded libraries' paths are those inside the image ({image})"

    image: str


class PathsOfMachine(Note):
    """The text has paths that exist on this machine."""

    template = "the preloaded libraries' paths are this machine's; for a container add --engine docker --image NAME"


# --- explain ---


class UnknownVariable(Message):
    """The catalogue has no such variable."""

    template = "no variable '{name}' in the catalogue[ (did you mean '{suggestion}'?)]"

    name: str
    suggestion: str | None = None


class Invisible(Note):
    """Nothing shows the value that a library uses."""

    template = "can't be seen: {reason}"

    reason: str


class NobodyReads(Note):
    """No library of the image reads the variable."""

    template = "nothing in this image reads it"


class NotLookedAt(Note):
    """No worker was started to ask it."""

    template = "not checked: {problem}"

    problem: Message


class WorkerTellsNothing(Note):
    """The worker that was asked failed. The clause's subject is the worker."""

    template = "unknown: the worker {failure}"

    failure: Message


class WorkersAnswer(Note):
    """A worker without a profile answers, perhaps with a library."""

    template = "a worker's own answer[, with {preloaded} preloaded]"

    preloaded: str | None = None


class OnlyKeysSet(Note):
    """A library lists only the keys that are set."""

    template = "{library} reports only keys that are set"

    library: str


class NotReported(Note):
    """The worker's answer does not have the value."""

    template = "{answer}: the value is not in it"

    answer: Message


class ReadBy(Note):
    """The libraries that read a variable, each with its versions if not all do."""

    template = "{libraries:list} (in this image: {present:list})"

    libraries: tuple[str, ...]
    present: tuple[str, ...]  # or "none"


class NotInShell(Note):
    """The variable is not set in the caller's environment."""

    template = "not set in your shell"


class InShell(Note):
    """The value of a variable in the caller's shell, and what becomes of it."""

    template = "{value} in your shell; {consequence}"

    value: str
    consequence: str  # one of those above


class KeyRow(Note):
    """One key of a variable that holds several, what it takes, and what it is ``here``."""

    template = "{key}: {allowed} (default {default}[, here {here}][, since version {since}])"

    key: str
    allowed: Message
    default: str
    here: str | None = None
    since: str | None = None


class NotObservable(Note):
    """No evidence shows what the variable does."""

    template = "not observable: {reason}"

    reason: str


# --- profiles and show ---


class OfPlace(Note):
    """The heading of profiles that are not shipped."""

    template = "{kind} profiles ({folder})"

    kind: str
    folder: str


class NotForThisMachine(Note):
    """The heading of profiles whose needs this machine does not meet."""

    template = "do not apply here: {reason}"

    reason: str


class RanksOfProfile(Note):
    """A profile is for several ranks, and the list below is for one."""

    template = "{ranks}; each has the settings below"

    ranks: int
