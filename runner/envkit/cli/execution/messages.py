"""Messages of ``envkit exec``: what can't be started, and whether the profile was in effect."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note, Severity

COMMAND_ON_PATH, FILE = "command on the PATH", "file"


class NoSuch(Message):
    """A command to start is not there. ``words`` is what it becomes without its quotes."""

    template = "no such {what}[; leave the quotes out: {words:command}]"

    what: str  # COMMAND_ON_PATH or FILE
    words: tuple[str, ...] | None = None


class IsAFolder(Message):
    """A clause that follows a command's path."""

    template = "is a folder"


class NotExecutable(Message):
    """A clause that follows a command: its file can't be executed."""

    template = "not executable; fix that with: chmod +x {file}"

    file: str


class NoContainers(Message):
    """The engine has no containers."""

    template = "--engine {engine}: runs nothing in a container"

    engine: str


class EngineMissing(Message):
    """The engine's own command is not installed."""

    template = "the command '{engine}' is not on the PATH; install it, or choose another --engine"

    engine: str


class NoEvidenceFolder(Message):
    """The folder for what processes say can't be made."""

    template = "{folder}: {reason}; set TMPDIR to a folder that can be written"

    folder: str
    reason: str


class InEffect(Note):
    """A profile was in effect in all processes."""

    template = (
        "{profile} was in effect in {processes:count process|processes} "
        "(checked: [{keys:list}, ]{variables:count variable})"
    )

    profile: str
    processes: int
    keys: tuple[str, ...]
    variables: int


class InEffectAsFarAsKnown(InEffect):
    """A profile was in effect in all processes, except for settings that no process could tell."""

    severity = Severity.NOTE
    template = (
        "{profile} was in effect, as far as it could be verified, in {processes:count process|processes} "
        "(checked: [{keys:list}, ]{variables:count variable})"
    )


class NotInEffect(Message):
    """A profile was not in effect: in the one process that was seen, or in ``wrong`` of several."""

    template = "{profile} was NOT in effect[ in {wrong} of {processes:count process|processes}]"

    profile: str
    wrong: int | None = None
    processes: int | None = None


class OwnVariables(Note):
    """The command set variables for processes of its own."""

    template = "the command itself set, for processes of its own: {variables:list}"

    variables: tuple[str, ...]  # as NAME=VALUE


class RemovedVariables(Caution):
    """A clause that follows a process."""

    template = "removed {names:list} from its environment"

    names: tuple[str, ...]


class SetVariable(Caution):
    """A clause that follows a process."""

    template = "set {name}={value}"

    name: str
    value: str


class ChangedVariables(Caution):
    """A process changed variables of the profile's. ``more`` is how many others did the same."""

    template = "process {process:d}[ and {more} more] ({argv}) {did}: processes that it starts lack the profile's"

    process: int
    more: int | None
    argv: str
    did: tuple[Message, ...]


class ChangedForChildren(ChangedVariables):
    """A process changed variables that only processes read when they start."""

    severity = Severity.WARNING
    template = (
        "process {process:d}[ and {more} more] ({argv}) {did}: it keeps the profile's, but processes that it starts "
        "lack it"
    )


class OtherMachine(Caution):
    """A profile won on another kind of machine than this one."""

    template = (
        "profile '{profile}' won on {cpu} with {usable_cpus:count usable CPU}, and this is {this_cpu} with "
        "{this_usable_cpus}: it may not help here; measure it with: envkit bench {profile} -- your training"
    )

    profile: str
    cpu: str
    usable_cpus: int
    this_cpu: str
    this_usable_cpus: int
