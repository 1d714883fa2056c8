"""Messages of findings about what a user's command printed: the readings of its metric, and complaints of libraries."""

from __future__ import annotations

from envkit.checks.messages import Reason, Remedy
from envkit.messages import Advice, Caution, Note

# Why a finding matters, by its code.
WHY = {
    "rank-lines": "a launcher passes the lines of all ranks on, and each rank prints every step",
    "repeated-lines": "each rank prints every step, so a step takes longer than the report says; ratios stand",
    "unmatched-lines": "envkit leaves out the times of all steps that end in such a line",
    "readings-too-long": "several ranks may print each step, or the times are not of this run",
    "readings-too-short": "the rest is not compared: the command logs every hundredth step, or --unit is wrong",
    "readings-rounded": "rounding may hide a smaller difference, or create one",
    "unrelated-complaint": "it concerns no setting of a profile, so the result stands",
}
# What to do, by the code.
FIX = {
    "rank-lines": "to read another rank, let the metric match its mark too",
    "repeated-lines": "let rank 0 alone print, or print the time of each step and match that",
    "unmatched-lines": "if they are steps, match them too; if not, match more of the others",
    "readings-too-long": "match the lines of one rank, or the times that this run takes",
    "readings-rounded": "let the command print more digits, or time its lines with a metric that has no group",
    "unrelated-complaint": "fix what it names if another command needs it",
}


def reason(code: str) -> Reason:
    """Return why the finding of this code matters."""
    return Reason(WHY[code])


def remedy(code: str) -> Remedy:
    """Return the change that removes the finding of this code."""
    return Remedy(FIX[code])


class RankLines(Note):
    """One rank's lines were read. ``mark`` is what the launcher writes before each."""

    template = "the metric reads the lines after '{mark}' alone; {ranks:count rank} had such lines"

    mark: str
    ranks: int


class RepeatedLines(Caution):
    """Each step has several lines, which nothing tells apart. A metric times lines as they arrive."""

    template = "the metric matches each step {times:count time}, and ms/step is that many times too small"

    times: int


class UnmatchedLines(Caution):
    """Lines that look like readings, such as ``line``, and that the metric does not match."""

    template = "the metric does not match {count:count line} like '{line}'"

    count: int
    line: str


class ReadingsTooLong(Caution):
    template = "the readings sum to {sum_s:.3g} s, and the command printed them within {elapsed_s:.3g} s"

    sum_s: float
    elapsed_s: float


class ReadingsTooShort(Note):
    """``unit`` is one in which the readings would cover the time."""

    template = (
        "the readings cover {share:.1%} of the time in which the command printed them[; read in {unit}, they "
        "would cover it]"
    )

    share: float
    unit: str | None = None


class CheckUnit(Advice):
    """``unit`` is the one to give, if the readings are in it."""

    template = "check --unit[, and give --unit {unit} if that is right]"

    unit: str | None = None


class ReadingsRounded(Caution):
    template = "the last digits of the readings stand for {share:.0%} of their times"

    share: float


class UnrelatedComplaint(Note):
    """``more`` counts other lines of the kind."""

    template = 'a library printed "{line}"[, and {more} more]'

    line: str
    more: int | None = None
