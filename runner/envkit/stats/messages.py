"""Messages and the error of the statistics, and words for the verdicts of a comparison, as JSON documents have them."""

from __future__ import annotations

from envkit.messages import Message, MessageError

# Values of stats.verdict.Verdict.
NO_RELEVANT_DIFFERENCE = "no difference larger than the margin"
# With the margin in percent.
NO_DIFFERENCE_LARGER = "no difference larger than {:g}%"
NO_DIFFERENCE_FOUND = "no difference found"
TOO_FEW_SAMPLES = "too few samples"
TARGET_NOT_REACHED = "target not reached"
ONE_RUN_EACH = "one run each"


class NoLogarithm(Message):
    """A ratio is not above 0."""

    template = "{value:g} has no logarithm"

    value: float


class UnequalLengths(Message):
    """Samples of one arm have different numbers of steps."""

    template = "samples have {fewest} to {most} steps, and steps are compared by their numbers"

    fewest: int
    most: int


class InvalidTimesError(MessageError, ValueError):
    """A time, or a ratio of times, is out of range."""
