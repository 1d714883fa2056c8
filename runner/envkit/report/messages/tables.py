"""Messages in and below tables."""

from __future__ import annotations

from envkit.messages import Message, Note

# How far the times of a table can be compared.
OF_BLOCKS = "the speedup compares blocks of one sample each"
TOO_FEW = "too few samples to compare"
FAILED = "a failed run compares nothing"


class Medians(Note):
    """The times of a table are medians; ``caution`` is how far they can be compared."""

    template = "medians[; {caution}]"

    caution: str | None = None


class LeftAfter(Note):
    """An arm left a race after so many blocks."""

    template = "after block {blocks:d}"

    blocks: int


class RaceSpeeds(Note):
    """The speeds in the table of a race."""

    template = "speed: a share of {winner}'s, in the blocks of both; too few samples for an interval"

    winner: str


class WithoutTimes(Note):
    """A table of such a run has no times, because a reader would make a speedup of them."""

    template = "times are omitted, because the run failed"


class MoreDifferences(Note):
    """The number of differences that a short table leaves out."""

    template = "and {more} more, which --details shows"

    more: int


class Published(Note):
    """A row of the figures that the book gives."""

    template = "the book's {profile}"

    profile: str


class AgainstOther(Note):
    """A difference found over another reference than the baseline."""

    template = "{difference} (against {reference})"

    difference: str
    reference: str


class AblationColumns(Note):
    """The columns of an ablation; ``library`` names rows whose speedup alone is over a library."""

    template = (
        "alone: speedup over {reference}[ ({library}: over that library)]; "
        "in profile: {profile} over {profile} without the setting"
    )

    reference: str
    profile: str
    library: str | None = None


class MeasuredOnce(Note):
    """Arms of an ablation that are one and the same."""

    template = "measured once: {same:lines}"

    same: tuple[Message, ...]


class SameArm(Note):
    template = "{name} is {arm}"

    name: str
    arm: str


class NoDifferenceAbove(Note):
    template = "same within {margin:exact_percent}"

    margin: float
