"""Messages of two sessions that are compared. Ratios are of a speed now over that then: below 1 it is slower now."""

from __future__ import annotations

from envkit.messages import Advice, Caution, Note, Severity

WARNING = Severity.WARNING
CHANGE = "{arm}: {ratio:ratio}x its {what} then ({confidence:exact_percent} CI {low:ratio} to {high:ratio})"


class Changed(Note):
    """How an arm changed, by the interval that decides. ``what`` is its speed, or its lead over the reference."""

    template = CHANGE

    arm: str
    what: str
    ratio: float
    low: float
    high: float
    confidence: float


class Regression(Changed):
    severity = Severity.ERROR
    template = "REGRESSION  " + CHANGE


class FasterNow(Changed):
    template = "FASTER  " + CHANGE


class NoRegression(Changed):
    template = "NO REGRESSION  " + CHANGE


class NotCertain(Changed):
    severity = WARNING
    template = "NOT CERTAIN  " + CHANGE


class NotCompared(Caution):
    template = "NOT COMPARED  {arm}: the reference kernel changed, and it has no reference"

    arm: str


class KernelOnly(Caution):
    """Only the reference kernel's speed was seen to change: ``measured`` is the arm's own change."""

    template = "only the reference kernel changed: as measured, {arm} runs at {measured:ratio}x its speed then"

    arm: str
    measured: float


class MachineChanged(Note):
    template = "{ratio:ratio}x its speed then ({low:ratio} to {high:ratio}), by the reference kernel"

    ratio: float
    low: float
    high: float


class LeadChanged(Note):
    """An arm's speedup over the reference, now over that then."""

    template = "{arm} over {reference}: {ratio:ratio}x its speedup then ({low:ratio} to {high:ratio})"

    arm: str
    reference: str
    ratio: float
    low: float
    high: float


class OtherKernel(Caution):
    template = (
        "the reference kernel changed, so speeds can't be normalised: only speedups over the reference are "
        "compared, and a slowdown of all profiles alike goes unseen"
    )


class OtherWarmUp(Caution):
    template = (
        "the baseline left out the first {then} timed steps of each sample, this run {now}: warm-up may "
        "explain part of a change"
    )

    then: int
    now: int


class UnderLoad(Caution):
    template = (
        "{disturbed} of {blocks} blocks were disturbed, so its times hold only under that load; "
        "measure again on a quieter machine"
    )

    disturbed: int
    blocks: int


class Session(Note):
    template = "{source}: {measured}, {blocks:count block}[, {disturbed} of them disturbed]"

    source: str
    measured: str
    blocks: int
    disturbed: int | None


class OneSession(Note):
    template = "measure once more before you act: memory layout, neighbours and heat differ from session to session"


class SaveAgain(Advice):
    template = "save a new baseline to keep the gain"


class MoreBlocks(Advice):
    template = "measure more blocks: a loss of {threshold:exact_percent} is neither found nor excluded"

    threshold: float


class NoDifferences(Note):
    template = "the two environments are recorded as identical"
