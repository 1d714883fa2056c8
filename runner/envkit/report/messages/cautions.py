"""Cautions: what speaks against using a result as it stands."""

from __future__ import annotations

from envkit.messages import Message, Severity

WARNING, ERROR = Severity.WARNING, Severity.ERROR


class VendorCheckOverridden(Message):
    code = "report.vendor-check-overridden"
    severity = WARNING
    template = "overrides MKL's vendor check (not supported by Intel)"


class MayChangeResults(Message):
    code = "report.may-change-results"
    severity = WARNING
    template = "may change results"


class LossesDiffer(Message):
    """``largest`` is None where a loss is no number."""

    code = "report.losses-differ"
    severity = ERROR
    template = "changes results: losses differ[ by up to {largest:percent}]"

    largest: float | None


class CostsMemory(Message):
    code = "report.costs-memory"
    severity = WARNING
    template = "needs {ratio:.1f}x the memory"

    ratio: float


class NotSteady(Message):
    code = "report.not-steady"
    severity = WARNING
    template = "{arm} was still warming up after half of each sample; raise {option}"

    arm: str
    option: str


class SpeedupDrifted(Message):
    code = "report.speedup-drifted"
    severity = WARNING
    template = "the speedup[ of {arm}] drifted to {ratio:ratio}x of its start during the run, and is an average"

    ratio: float
    arm: str | None = None


class HeldBackByQuota(Message):
    code = "report.held-back-by-quota"
    severity = WARNING
    template = "{arm} was held back by its CPU quota for {seconds:duration} of CPU time"

    arm: str
    seconds: float


class SyntheticData(Message):
    code = "report.synthetic-data"
    severity = WARNING
    template = "SYNTHETIC DATA: losses and accuracy are meaningless"


class UnverifiedPackage(Message):
    code = "report.unverified-package"
    severity = WARNING
    template = "UNVERIFIED package: {what}"

    what: str


class OtherBuilds(Message):
    code = "report.other-builds"
    severity = WARNING
    template = "{subject} has PyTorch built {build}, and {reference} {other_build}; this alone can make a difference"

    subject: str
    build: str
    reference: str
    other_build: str


class Finding(Message):
    """A finding of ``envkit doctor``, by its code; with the ``fix`` where it costs more than any profile gains."""

    code = "report.finding"
    severity = WARNING
    template = "{seen}: {why}[; {fix}] ({finding})"

    finding: str
    seen: Message
    why: Message
    fix: Message | None = None


class OfArm(Message):
    """A caution that concerns one of several arms."""

    code = "report.of-arm"
    severity = WARNING
    template = "{arm} {caution}"

    arm: str
    caution: Message
