"""Messages about a document that is no specification. Its keys are as in schemas/specification.schema.json."""

from __future__ import annotations

from envkit.messages import Message


class UnknownSpecificationKey(Message):
    template = "unknown key '{key}'"

    key: str


class InvalidValue(Message):
    """A value breaks the schema. ``problem`` is what the validator says."""

    template = "[{key}: ]{problem}"

    key: str
    problem: str


class UnusableText(Message):
    """A text is no regular expression, or no target. ``problem`` is a clause whose subject is the text."""

    template = "{key}: '{value}' {problem}"

    key: str
    value: str
    problem: Message


class StepsBesideMetric(Message):
    template = "user_command.optimizer_steps: has no effect with a metric"


class TargetWithoutEpochs(Message):
    template = "until: has no effect without epochs"


class UnknownArm(Message):
    """A setting of an ablation names an arm that the specification does not have."""

    template = "ablated: {setting}: there is no arm '{arm}'"

    setting: str
    arm: str
