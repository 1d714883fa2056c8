"""Name what a comparison of two arms can come to."""

from __future__ import annotations

from envkit.common.text_enum import TextEnum
from envkit.stats import messages


class Verdict(TextEnum):
    """The first four are what an interval says, the others why there is none."""

    FASTER = "faster"  # the whole interval is above 1
    SLOWER = "slower"  # the whole interval is below 1
    EQUIVALENT = messages.NO_RELEVANT_DIFFERENCE  # it holds 1 and is within the margin; in words with its figure
    NOT_FOUND = messages.NO_DIFFERENCE_FOUND  # it holds 1 and reaches beyond the margin: there may be one
    NOT_IN_EFFECT = "NOT IN EFFECT"  # what either was to set was not observed, so times would say nothing of it
    FAILED = "failed"  # a worker failed, which ended the run
    NOT_ENDED = "not ended"  # the run goes on or was interrupted; before its end nothing is decided
    TOO_FEW_SAMPLES = messages.TOO_FEW_SAMPLES  # the run ended with fewer blocks than an interval takes
    NOT_REACHED = messages.TARGET_NOT_REACHED  # a training ended without it, so that there is no time to it
    ONE_RUN_EACH = messages.ONE_RUN_EACH  # by design: that gives a ratio and no interval
