"""Cautions: what speaks against using a result as it stands."""

from __future__ import annotations

from envkit.messages import Caution, Message, Severity

ERROR = Severity.ERROR


class VendorCheckOverridden(Caution):
    template = "overrides MKL's vendor check (not supported by Intel)"


class MayChangeResults(Caution):
    template = "may change results"


class LossesDiffer(Message):
    """``largest`` is None where a loss is no number."""

    severity = ERROR
    template = "changes results: losses differ[ by up to {largest:percent}]"

    largest: float | None


class CostsMemory(Caution):
    template = "needs {ratio:.1f}x the memory"

    ratio: float


class NotSteady(Caution):
    template = "{arm} was still warming up after half of each sample; raise {option}"

    arm: str
    option: str


class SpeedupDrifted(Caution):
    template = "the speedup[ of {arm}] drifted to {ratio:ratio}x of its start during the run, and is an average"

    ratio: float
    arm: str | None = None


class MayBeOverstated(Caution):
    """``low`` is the low end of the speedup's interval."""

    template = (
        "the speedup[ of {arm}] may be overstated, as it is close to the noise; rely on no more than {low:ratio}x"
    )

    low: float
    arm: str | None = None  # if there are several


class HeldBackByQuota(Caution):
    template = "{arm} was held back by its CPU quota for {seconds:duration} of CPU time"

    arm: str
    seconds: float


class SyntheticData(Caution):
    template = "SYNTHETIC DATA: losses and accuracy are meaningless"


class UnverifiedPackage(Caution):
    template = "UNVERIFIED package: {what}"

    what: str


class OtherBuilds(Caution):
    template = "{subject} has PyTorch built {build}, and {reference} {other_build}; this alone can make a difference"

    subject: str
    build: str
    reference: str
    other_build: str


class Finding(Caution):
    """A finding of ``envkit doctor``, by its code; with the ``fix`` where it costs more than any profile gains."""

    template = "{seen}: {why}[; {fix}] ({finding})"

    finding: str
    seen: Message
    why: Message
    fix: Message | None = None


class OfArm(Caution):
    """A caution that concerns one of several arms."""

    template = "{arm} {caution}"

    arm: str
    caution: Message
