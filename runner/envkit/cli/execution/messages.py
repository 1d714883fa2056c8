"""Messages of ``envkit exec``: what can't be started, and whether the profile was in effect."""

from __future__ import annotations

from envkit.messages import Message, Severity


class NoSuchCommand(Message):
    """A clause that follows a command: no folder of PATH has it."""

    code = "cli.no-such-command"
    template = "no such command on the PATH[; leave the quotes out: {words:command}]"

    words: tuple[str, ...] | None = None  # a command line that was given as one word


class NoSuchFile(Message):
    """A clause that follows a command's path."""

    code = "cli.no-such-file"
    template = "no such file[; leave the quotes out: {words:command}]"

    words: tuple[str, ...] | None = None  # a command line that was given as one word


class IsAFolder(Message):
    """A clause that follows a command's path."""

    code = "cli.is-a-folder"
    template = "is a folder"


class NotExecutable(Message):
    """A clause that follows a command: its file can't be executed."""

    code = "cli.not-executable"
    template = "not executable; fix that with: chmod +x {file}"

    file: str


class NoContainers(Message):
    """The engine has no containers."""

    code = "cli.no-containers"
    template = "--engine {engine}: runs nothing in a container"

    engine: str


class EngineMissing(Message):
    """The engine's own command is not installed."""

    code = "cli.engine-missing"
    template = "the command '{engine}' is not on the PATH; install it, or choose another --engine"

    engine: str


class NoEvidenceFolder(Message):
    """The folder for what processes say can't be made."""

    code = "cli.no-evidence-folder"
    template = "{folder}: {reason}; set TMPDIR to a folder that can be written"

    folder: str
    reason: str


class InEffect(Message):
    """A profile was in effect in all processes."""

    code = "cli.in-effect"
    severity = Severity.NOTE
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

    code = "cli.in-effect-as-far-as-known"
    severity = Severity.NOTE
    template = (
        "{profile} was in effect, as far as it could be verified, in {processes:count process|processes} "
        "(checked: [{keys:list}, ]{variables:count variable})"
    )


class NotInEffectInOne(Message):
    """A profile was not in effect in the only process."""

    code = "cli.not-in-effect-in-one"
    template = "{profile} was NOT in effect"

    profile: str


class NotInEffectInSome(Message):
    """A profile was not in effect in ``wrong`` of several processes."""

    code = "cli.not-in-effect-in-some"
    template = "{profile} was NOT in effect in {wrong} of {processes:count process|processes}"

    profile: str
    wrong: int
    processes: int


class NotSeen(Message):
    """A process had something else than the profile sets."""

    code = "cli.not-seen"
    template = "{key}: expected {expected}, seen {seen} (process {process:d}: {argv})"

    key: str
    expected: Message
    seen: Message
    process: int
    argv: str


class OwnVariables(Message):
    """The command set variables for processes of its own."""

    code = "cli.own-variables"
    severity = Severity.NOTE
    template = "the command itself set, for processes of its own: {variables:list}"

    variables: tuple[str, ...]  # as NAME=VALUE


class RemovedVariables(Message):
    """A clause that follows a process."""

    code = "cli.removed-variables"
    severity = Severity.WARNING
    template = "removed {names:list} from its environment"

    names: tuple[str, ...]


class SetVariable(Message):
    """A clause that follows a process."""

    code = "cli.set-variable"
    severity = Severity.WARNING
    template = "set {name}={value}"

    name: str
    value: str


class ChangedVariables(Message):
    """A process changed variables of the profile's. ``more`` is how many others did the same."""

    code = "cli.changed-variables"
    severity = Severity.WARNING
    template = "process {process:d}[ and {more} more] ({argv}) {did}: processes that it starts lack the profile's"

    process: int
    more: int | None
    argv: str
    did: tuple[Message, ...]


class ChangedForChildren(ChangedVariables):
    """A process changed variables that only processes read when they start."""

    code = "cli.changed-for-children"
    severity = Severity.WARNING
    template = (
        "process {process:d}[ and {more} more] ({argv}) {did}: it keeps the profile's, but processes that it starts "
        "lack it"
    )
