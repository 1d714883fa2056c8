"""The messages of the command line itself."""

from __future__ import annotations

from envkit.messages import Message, Note


class MoreOptions(Note):
    """The short help leaves options out."""

    template = "{prog} --help-all shows {hidden:count more option}"

    prog: str
    hidden: int


class UnknownCommand(Message):
    template = "no command '{command}'[; did you mean '{suggestion}'?]; envkit --help lists the commands"

    command: str
    suggestion: str | None = None


class OptionBeforeCommand(Message):
    template = "give the command first, and {option} after it; envkit --help lists the commands"

    option: str


class UnknownOption(Message):
    template = "no option {option}[; did you mean {suggestion}?]; {prog} --help-all lists the options"

    option: str
    prog: str
    suggestion: str | None = None


class UnexpectedArgument(Message):
    template = "unexpected argument '{argument}'; see {prog} --help"

    argument: str
    prog: str


class BadOptionValue(Message):
    """An option, or a positional argument, has a value that its type refuses. ``problem`` says what would be right."""

    template = "{argument}: {problem}"

    argument: str
    problem: Message


class BadUsage(Message):
    """Another complaint of argparse, such as a missing argument. ``detail`` is in argparse's words."""

    template = "[{argument}: ]{detail}; see {prog} --help"

    detail: str
    prog: str
    argument: str | None = None


class UnknownChoice(Message):
    template = "no such value '{value}'[; did you mean '{suggestion}'?]; choose {choices:or}"

    value: str
    choices: tuple[str, ...]
    suggestion: str | None = None


class NothingToCompare(Message):
    template = "{profile} is what others are compared with; name another profile (envkit profiles lists them)"

    profile: str


class Interrupted(Message):
    template = "interrupted"


class SystemRefused(Message):
    """The operating system refused something that no other message is about."""

    template = "{problem}"

    problem: Message


class NeedsProfile(Message):
    """A command that needs a profile was given none."""

    template = "{command} needs a PROFILE[, for example {example}]; envkit profiles lists them"

    command: str
    example: str | None = None


class OptionAlone(Message):
    """An option has no effect without another one."""

    template = (
        "{option} has no effect without {other}; add it[, for example {example}], "
        "or leave this out[ and give {instead}]"
    )

    option: str
    other: str
    example: str | None = None
    instead: str | None = None


# What an option does that leaves another one without effect.
REASONS = {
    "--against": "measures nothing",
    "--blocks": "never stops early",
    "--detach": "leaves no process that could cancel the job",
    "--exhaustive": "only measures the space on this machine",
    "--for-issue": "looks at one short training",
    "--full": "trains each arm once, for whole epochs",
    "--in-place": "makes no copy",
    "--optimizer-steps": "needs no pattern",
    "--phases": "shows no operators",
    "--resume": "continues what the record says",
    "--watch-only": "measures nothing",
    "--pid": "names a process that runs already",
    "--whole-command": "times the command from start to end",
    "--workers 0": "starts no worker",
    "the command after --": "runs as it is, on this machine",
    "fleet diff": "measures nothing",
    "fleet report": "measures nothing",
    "loader-grid": "measures the loader",
    "two images": "measures one process in each image",
}


class HasNoEffect(Message):
    """An option has no effect beside another one, or on what a command does."""

    template = "{option} has no effect with {other}[, which {reason}]; leave it out[, or give {instead}]"

    option: str
    other: str
    reason: str | None = None  # of REASONS
    instead: str | None = None


class NotInPython(Message):
    """An option of ``envkit bench`` gives no result, which its function in Python returns."""

    template = "envkit.bench takes no option '{option}'; use the command line: envkit bench"

    option: str
