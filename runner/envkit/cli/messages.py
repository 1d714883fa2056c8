"""The messages of the command line itself."""

from __future__ import annotations

from envkit.messages import Message


class UnknownCommand(Message):
    code = "cli.unknown-command"
    template = "no command '{command}'[; did you mean '{suggestion}'?]; envkit --help lists the commands"

    command: str
    suggestion: str | None = None


class OptionBeforeCommand(Message):
    code = "cli.option-before-command"
    template = "give the command first, and {option} after it; envkit --help lists the commands"

    option: str


class UnknownOption(Message):
    code = "cli.unknown-option"
    template = "no option {option}[; did you mean {suggestion}?]; {prog} --help-all lists the options"

    option: str
    prog: str
    suggestion: str | None = None


class UnexpectedArgument(Message):
    code = "cli.unexpected-argument"
    template = "unexpected argument '{argument}'; see {prog} --help"

    argument: str
    prog: str


class BadOptionValue(Message):
    """An option, or a positional argument, has a value that its type refuses. ``problem`` says what would be right."""

    code = "cli.bad-option-value"
    template = "{argument}: {problem}"

    argument: str
    problem: str | Message


class BadUsage(Message):
    """Another complaint of argparse, such as a missing argument."""

    code = "cli.bad-usage"
    template = "{problem}; see {prog} --help"

    problem: str
    prog: str


class UnknownChoice(Message):
    code = "cli.unknown-choice"
    template = "no such value '{value}'[; did you mean '{suggestion}'?]; choose {choices:or}"

    value: str
    choices: tuple[str, ...]
    suggestion: str | None = None


class NoUnit(Message):
    code = "cli.no-unit"
    template = "'{text}' has no unit; write {text}s or {text}m"

    text: str


class NothingToCompare(Message):
    code = "cli.nothing-to-compare"
    template = "{profile} is what others are compared with; name another profile (envkit profiles lists them)"

    profile: str


class Interrupted(Message):
    code = "cli.interrupted"
    template = "interrupted"


class SystemRefused(Message):
    """The operating system refused something that no other message is about."""

    code = "cli.system-refused"
    template = "{problem}"

    problem: str


class NoCommand(Message):
    """``--`` was the last word."""

    code = "cli.no-command"
    template = "no command follows --; name your training, for example: envkit {command}[ {profile}] -- python train.py"

    command: str
    profile: str | None


class TwoTrainings(Message):
    code = "cli.two-trainings"
    template = "--workload {workload} and the command after -- both name what to train; leave one out"

    workload: str


class NotWithoutCommand(Message):
    """An option of a user's command, and no command."""

    code = "cli.not-without-command"
    template = "{option} means nothing without a command; add it at the end, for example: -- python train.py"

    option: str


class NotTogether(Message):
    """Two ways to time a command."""

    code = "cli.not-together"
    template = "{option} means nothing with {other}, {why}; leave one out"

    option: str
    other: str
    why: str


class OptionRefused(Message):
    """An option, or a PROFILE, that a command does not take; ``why`` is a clause whose subject is the option."""

    code = "cli.option-refused"
    template = "{option} {why}"

    option: str
    why: Message | str


class UnitWithoutMetric(Message):
    code = "cli.unit-without-metric"
    template = "--unit means nothing without --metric; add it, or leave this out"
