"""What a comparison of two arms can come to."""

from __future__ import annotations

from envkit.common.text_enum import TextEnum


class Verdict(TextEnum):
    """The first four are what an interval says, the others why there is none."""

    FASTER = "faster"  # the whole interval is above 1
    SLOWER = "slower"  # the whole interval is below 1
    EQUIVALENT = "no difference larger than the margin"  # it holds 1 and is within the margin; in words with its figure
    NOT_FOUND = "no difference found"  # it holds 1 and reaches beyond the margin: there may be a difference or not
    NOT_IN_EFFECT = "NOT IN EFFECT"  # what either was to set was not observed, so times would say nothing of it
    FAILED = "failed"  # a worker failed, which ended the run
    NOT_ENDED = "not ended"  # the run goes on or was interrupted; before its end nothing is decided
    TOO_FEW_SAMPLES = "too few samples"  # the run ended with fewer blocks than an interval takes
    NOT_REACHED = "target not reached"  # a training ended without it, so that there is no time to it
    ONE_RUN_EACH = "one run each"  # by design: that gives a ratio and no interval
