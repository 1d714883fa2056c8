"""Messages about a document that is no study of a run."""

from __future__ import annotations

from envkit.messages import Message


class UnknownStudyKey(Message):
    template = "unknown key '{key}'"

    key: str


class BelowLeast(Message):
    template = "{key}: {value} is less than {least}"

    key: str
    value: float
    least: float


class UnusableText(Message):
    """A text is no regular expression, or no target. ``problem`` is a clause whose subject is the text."""

    template = "{key}: '{value}' {problem}"

    key: str
    value: str
    problem: Message


class StepsBesideMetric(Message):
    template = "user_command.optimizer_steps: has no effect with a metric"


class UnknownArm(Message):
    """A study names an arm that it does not have. ``key`` says where."""

    template = "{key}: there is no arm '{arm}'"

    key: str
    arm: str


class NoArms(Message):
    template = "arms: there is no arm"


class NoSettings(Message):
    template = "ablated: there is no setting, but the view is settings"
