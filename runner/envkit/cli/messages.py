"""Messages of the command line."""

from __future__ import annotations

from envkit.messages import Message


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


class UnitWithoutMetric(Message):
    code = "cli.unit-without-metric"
    template = "--unit means nothing without --metric; add it, or leave this out"
