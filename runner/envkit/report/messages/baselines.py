"""Messages of two sessions that are compared. Ratios are of a speed now over that then: below 1 it is slower now."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING = Severity.NOTE, Severity.WARNING
CHANGE = "{arm}: {ratio:ratio}x its {what} then ({confidence:exact_percent} CI {low:ratio} to {high:ratio})"


class Changed(Message):
    """How an arm changed, by the interval that decides. ``what`` is its speed, or its lead over the reference."""

    code = "report.baseline-changed"
    severity = NOTE
    template = CHANGE

    arm: str
    what: str
    ratio: float
    low: float
    high: float
    confidence: float


class Regression(Changed):
    code = "report.baseline-regression"
    severity = Severity.ERROR
    template = "REGRESSION  " + CHANGE


class FasterNow(Changed):
    code = "report.baseline-faster"
    template = "FASTER  " + CHANGE


class NoRegression(Changed):
    code = "report.baseline-no-regression"
    template = "NO REGRESSION  " + CHANGE


class NotCertain(Changed):
    code = "report.baseline-not-certain"
    severity = WARNING
    template = "NOT CERTAIN  " + CHANGE


class NotCompared(Message):
    code = "report.baseline-not-compared"
    severity = WARNING
    template = "NOT COMPARED  {arm}: the reference kernel changed, and it has no reference"

    arm: str


class KernelOnly(Message):
    """Only the reference kernel's speed was seen to change: ``measured`` is the arm's own change."""

    code = "report.baseline-kernel-only"
    severity = WARNING
    template = "only the reference kernel changed: as measured, {arm} runs at {measured:ratio}x its speed then"

    arm: str
    measured: float


class MachineChanged(Message):
    code = "report.baseline-machine"
    severity = NOTE
    template = "{ratio:ratio}x its speed then ({low:ratio} to {high:ratio}), by the reference kernel"

    ratio: float
    low: float
    high: float


class LeadChanged(Message):
    """An arm's speedup over the reference, now over that then."""

    code = "report.baseline-lead"
    severity = NOTE
    template = "{arm} over {reference}: {ratio:ratio}x its speedup then ({low:ratio} to {high:ratio})"

    arm: str
    reference: str
    ratio: float
    low: float
    high: float


class OtherKernel(Message):
    code = "report.baseline-other-kernel"
    severity = WARNING
    template = (
        "the reference kernel changed, so speeds can't be normalised: only speedups over the reference are "
        "compared, and a slowdown of all profiles alike goes unseen"
    )


class OtherWarmUp(Message):
    code = "report.baseline-other-warm-up"
    severity = WARNING
    template = (
        "the baseline left out the first {then} timed steps of each sample, this run {now}: warm-up may "
        "explain part of a change"
    )

    then: int
    now: int


class UnderLoad(Message):
    code = "report.baseline-under-load"
    severity = WARNING
    template = (
        "{disturbed} of {blocks} blocks were disturbed, so its times hold only under that load; "
        "measure again on a quieter machine"
    )

    disturbed: int
    blocks: int


class OneOfThem(Message):
    """A caution on the session ``then`` or ``now``."""

    code = "report.baseline-one-of-them"
    severity = WARNING
    template = "{session}: {caution}"

    session: str
    caution: Message


class Session(Message):
    code = "report.baseline-session"
    severity = NOTE
    template = "{source}: {measured}, {blocks:count block}[, {disturbed} of them disturbed]"

    source: str
    measured: str
    blocks: int
    disturbed: int | None


class OneSession(Message):
    code = "report.baseline-one-session"
    severity = NOTE
    template = "measure once more before you act: memory layout, neighbours and heat differ from session to session"


class SaveAgain(Message):
    code = "report.baseline-save-again"
    severity = Severity.ADVICE
    template = "save a new baseline to keep the gain"


class MoreBlocks(Message):
    code = "report.baseline-more-blocks"
    severity = Severity.ADVICE
    template = "measure more blocks: a loss of {threshold:exact_percent} is neither found nor excluded"

    threshold: float


class NoDifferences(Message):
    code = "report.baseline-no-differences"
    severity = NOTE
    template = "the two environments are recorded as identical"
