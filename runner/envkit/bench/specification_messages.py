"""Messages about a document that is no specification. Its keys are as in schemas/specification.schema.json."""

from __future__ import annotations

from envkit.messages import Message


class UnknownSpecificationKey(Message):
    code = "bench.unknown-specification-key"
    template = "unknown key '{key}'"

    key: str


class InvalidValue(Message):
    """A value breaks the schema. ``problem`` is what the validator says."""

    code = "bench.invalid-value"
    template = "[{key}: ]{problem}"

    key: str
    problem: str


class UnusableText(Message):
    """A text is no regular expression, or no target. ``problem`` is a clause whose subject is the text."""

    code = "bench.unusable-text"
    template = "{key}: '{value}' {problem}"

    key: str
    value: str
    problem: Message


class StepsBesideMetric(Message):
    code = "bench.steps-beside-metric"
    template = "user_command.optimizer_steps: has no effect with a metric"


class TargetWithoutEpochs(Message):
    code = "bench.target-without-epochs"
    template = "until: has no effect without epochs"


class UnknownArm(Message):
    """A setting of an ablation names an arm that the specification does not have."""

    code = "bench.unknown-arm"
    template = "ablated: {setting}: there is no arm '{arm}'"

    setting: str
    arm: str
