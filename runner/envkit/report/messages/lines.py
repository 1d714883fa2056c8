"""Messages of a report's labelled lines: settings, losses, noise, the cause of a difference, and the system.

Speedups are ratios over the reference's speed: above 1 is faster. Shares are of 1, times in seconds.
"""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING, ADVICE, ERROR = Severity.NOTE, Severity.WARNING, Severity.ADVICE, Severity.ERROR


# --- settings ---


class AllVerified(Message):
    code = "report.all-verified"
    severity = NOTE
    template = "{number:all} verified in every process"

    number: int


class OneVerified(Message):
    code = "report.one-verified"
    severity = NOTE
    template = "verified in every process"


class SomeVerified(Message):
    code = "report.some-verified"
    severity = WARNING
    template = "{number} of {of} verified in every process; not verified: {keys} ({reason})"

    number: int
    of: int
    keys: tuple[str, ...]
    reason: Message


class AllArmsVerified(Message):
    code = "report.all-arms-verified"
    severity = NOTE
    template = "verified in every process of {number:all} {things}"

    number: int
    things: str


class SomeArmsVerified(Message):
    code = "report.some-arms-verified"
    severity = WARNING
    template = "verified in every process of {number} of {of} {things}[; not in effect: {wrong}][; in part: {partly}]"

    number: int
    of: int
    things: str
    wrong: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()


class NothingToVerify(Message):
    code = "report.nothing-to-verify"
    severity = NOTE
    template = "nothing to verify: {arm} expects nothing"

    arm: str


class SeenFromOutside(Message):
    code = "report.seen-from-outside"
    severity = NOTE
    template = "{reason}"

    reason: Message


class CheckedIn(Message):
    """In how many processes of ``arm`` a setting was looked for that is not in effect."""

    code = "report.checked-in"
    severity = NOTE
    template = "checked in {processes:count process|processes} of {arm}"

    processes: int
    arm: str


class NotVerifiedYet(Message):
    code = "report.not-verified-yet"
    severity = NOTE
    template = "not verified: no process ended"


# --- losses ---


class LossesIdentical(Message):
    code = "report.losses-identical"
    severity = NOTE
    template = "identical over {steps:count step}[ for {arms}]"

    steps: int
    arms: str | None = None


class LossesPrintedAlike(Message):
    """Those that a user's command prints, so many in each sample."""

    code = "report.losses-printed-alike"
    severity = NOTE
    template = "equal within the last printed digit ({losses} in each sample)[ for {arms}]"

    losses: int
    arms: str | None = None


class LossesRounded(Message):
    code = "report.losses-rounded"
    severity = NOTE
    template = "equal within rounding (at most {largest:.1e}) over {steps:count step}[ for {arms}]"

    largest: float
    steps: int
    arms: str | None = None


class LossesNear(Message):
    """Means over samples of a user's command, whose own samples are ``own`` apart."""

    code = "report.losses-near"
    severity = NOTE
    template = "within {largest:percent} of {reference}'s; its own runs vary by {own:percent}[ ({arms})]"

    largest: float
    own: float
    reference: str
    arms: str | None = None


class LossesFarther(Message):
    """Losses that differ more than rounding explains; ``largest`` is None where a loss is no number."""

    code = "report.losses-farther"
    severity = ERROR
    template = "DIFFER[ by up to {largest:percent}][ for {arms}, not counted as faster]: results change"

    largest: float | None
    arms: str | None = None


class LossesOfOtherTraining(Message):
    code = "report.losses-of-other-training"
    severity = NOTE
    template = "not compared for {arms}: other workloads ({workloads}); {quantity} are compared"

    arms: str
    workloads: tuple[str, ...]
    quantity: str


class LossesNotRead(Message):
    code = "report.losses-not-read"
    severity = NOTE
    template = "not compared: add --loss-metric, or compare what your training prints"


class LossesOfOtherWeights(Message):
    code = "report.losses-of-other-weights"
    severity = NOTE
    template = "not compared: the images' PyTorch versions start from different weights"


class LossesUnknown(Message):
    code = "report.losses-unknown"
    severity = NOTE
    template = "not compared: too few samples"


# --- noise ---


class Undisturbed(Message):
    code = "report.undisturbed"
    severity = NOTE
    template = "no interference detected in {blocks:count block}[ ({size})]"

    blocks: int
    size: str | None = None


class WithoutDisturbed(Message):
    """The result of the other blocks alone."""

    code = "report.without-disturbed"
    severity = NOTE
    template = "[{arm} ]without them {ratio:ratio}x (95% CI {low:ratio} to {high:ratio})[: {verdict}]"

    ratio: float
    low: float
    high: float
    verdict: str | None = None  # if it is another one
    arm: str | None = None  # if there are several


class TooFewWithout(Message):
    code = "report.too-few-without"
    severity = WARNING
    template = "too few undisturbed blocks are left[ for {arms}]"

    arms: tuple[str, ...] = ()


class VerdictsWithout(Message):
    code = "report.verdicts-without"
    severity = NOTE
    template = "without them {changed}"

    changed: tuple[Message, ...]


class VerdictWithout(Message):
    code = "report.verdict-without"
    severity = NOTE
    template = "{arm}: {verdict}"

    arm: str
    verdict: str


class SameWithout(Message):
    code = "report.same-without"
    severity = NOTE
    template = "without them all verdicts are the same"


class Disturbed(Message):
    code = "report.disturbed"
    severity = WARNING
    template = "{disturbed} of {blocks} blocks disturbed[ (e.g. {example})][; {rest}][; a block is {size}]"

    disturbed: int
    blocks: int
    example: Message | None = None
    rest: Message | None = None
    size: str | None = None  # what a block is


class PaceVaried(Message):
    """The reference kernel's longest time over its shortest, without any interference that was counted."""

    code = "report.pace-varied"
    severity = WARNING
    template = "the machine's own speed varied {ratio:.1f}x during the run, cause unknown"

    ratio: float


# --- why ---


class SystemTimeChanged(Message):
    code = "report.system-time-changed"
    severity = NOTE
    template = "system time {moved} from {before:percent} to {after:percent}[: {cause}][; {covered}]"

    moved: str
    before: float
    after: float
    cause: Message | None = None
    covered: Message | None = None


class FaultsChanged(Message):
    code = "report.faults-changed"
    severity = NOTE
    template = "page faults {moved} from {before:,.0f} to {after:,.0f} per {unit}[: {cause}][; {covered}]"

    moved: str
    before: float
    after: float
    unit: str
    cause: Message | None = None
    covered: Message | None = None


class Covered(Message):
    """How much of the CPU time that was saved, or added, is the kernel's."""

    code = "report.covered"
    severity = NOTE
    template = "{share:percent} of the CPU time {saved} is system time"

    share: float
    saved: str


class FindTheRest(Message):
    """The command that shows what a counter does not explain."""

    code = "report.find-the-rest"
    severity = ADVICE
    template = "for the rest: {command}"

    command: str


class FindTheCause(FindTheRest):
    """The command that shows where the time goes if no counter moved."""

    code = "report.find-the-cause"
    template = "find the cause: {command}"


class MemoryKept(Message):
    code = "report.memory-kept"
    severity = NOTE
    template = "freed memory is kept, not returned"


class HugePages(Message):
    code = "report.huge-pages"
    severity = NOTE
    template = "memory comes in huge pages"


class FastestMkl(Message):
    code = "report.fastest-mkl"
    severity = NOTE
    template = "MKL uses its fastest code for this CPU"


class CauseUnknown(Message):
    code = "report.cause-unknown"
    severity = NOTE
    template = "cause unknown: system time and page faults are about the same"


class SettingsThatMatter(Message):
    """Clauses on the settings of an ablated profile."""

    code = "report.settings-that-matter"
    severity = NOTE
    template = "{clauses:lines}"

    clauses: tuple[Message, ...]


class SettingsDo(Message):
    code = "report.settings-do"
    severity = NOTE
    template = "{settings} {effect}"

    settings: tuple[str, ...]
    effect: str


# --- the machine and the record ---


class System(Message):
    code = "report.system"
    severity = NOTE
    template = "{cpu}, {cpus:count CPU}[, {gpu}], {engines}, {training}"

    cpu: str
    cpus: int
    gpu: str | None
    engines: tuple[str, ...]
    training: Message


class Torch(Message):
    """The version of an engine's torch; ``engine`` if it is not this machine's own Python."""

    code = "report.torch"
    severity = NOTE
    template = "[{engine} with ]torch {version}"

    version: str
    engine: str | None = None


class DetailsCommand(Message):
    code = "report.details"
    severity = ADVICE
    template = "{command:command}"

    command: tuple[str, ...]


class LeftOut(Message):
    code = "report.left-out"
    severity = NOTE
    template = "{number:count profile}: see --details"

    number: int
