"""Messages in and below tables."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE = Severity.NOTE


class Clauses(Message):
    """Several clauses on one line."""

    code = "report.clauses"
    severity = NOTE
    template = "{clauses:lines}"

    clauses: tuple[Message, ...]


class Medians(Message):
    """How the figures of a table were made of samples."""

    code = "report.medians"
    severity = NOTE
    template = "medians; the speedup compares blocks of one sample each"


class MediansOfTooFew(Message):
    """The figures are of too few samples for a speedup."""

    code = "report.medians-of-too-few"
    severity = NOTE
    template = "medians of too few samples to compare"


class MediansAlone(Message):
    """The figures are not compared with others."""

    code = "report.medians-alone"
    severity = NOTE
    template = "medians"


class MediansOfFailed(Message):
    """A worker failed before anything could be compared."""

    code = "report.medians-of-failed"
    severity = NOTE
    template = "medians; a failed run compares nothing"


class WithoutTimes(Message):
    """A table of such a run has no times, because a reader would make a speedup of them."""

    code = "report.without-times"
    severity = NOTE
    template = "times are omitted, because the run failed"


class MoreDifferences(Message):
    """The number of differences that a short table leaves out."""

    code = "report.more-differences"
    severity = NOTE
    template = "and {more} more, which --details shows"

    more: int


class Mark(Message):
    """The meaning of a mark in a column."""

    code = "report.mark"
    severity = NOTE
    template = "{mark}: {meaning}"

    mark: str
    meaning: Message


class Published(Message):
    """A row of the figures that the book gives."""

    code = "report.published"
    severity = NOTE
    template = "the book's {profile}"

    profile: str


class AgainstOther(Message):
    """A difference found over another reference than the baseline."""

    code = "report.against-other"
    severity = NOTE
    template = "{difference} (against {reference})"

    difference: str
    reference: str


class AblationColumns(Message):
    """The columns of an ablation; ``library`` names rows whose speedup alone is over a library."""

    code = "report.ablation-columns"
    severity = NOTE
    template = (
        "alone: speedup over {reference}[ ({library}: over that library)]; "
        "in profile: {profile} over {profile} without the setting"
    )

    reference: str
    profile: str
    library: str | None = None


class MeasuredOnce(Message):
    """Arms of an ablation that are one and the same."""

    code = "report.measured-once"
    severity = NOTE
    template = "measured once: {same:lines}"

    same: tuple[Message, ...]


class SameArm(Message):
    code = "report.same-arm"
    severity = NOTE
    template = "{name} is {arm}"

    name: str
    arm: str


class NoDifferenceAbove(Message):
    code = "report.no-difference-above"
    severity = NOTE
    template = "same within {margin:exact_percent}"

    margin: float
