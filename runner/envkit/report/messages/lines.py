"""Messages of a report's labelled lines: settings, losses, noise, the cause of a difference, and the system.

Speedups are ratios over the reference's speed: above 1 is faster. Shares are of 1, times in seconds.
"""

from __future__ import annotations

from envkit.messages import Advice, Caution, Message, Note, Severity

# What lowers page faults.
MEMORY_KEPT = "freed memory is kept, not returned"
HUGE_PAGES = "memory comes in huge pages"
# Why losses are not compared.
NOT_READ = "add --loss-metric, or compare what your training prints"
OTHER_WEIGHTS = "the images' PyTorch versions start from different weights"
TOO_FEW_SAMPLES = "too few samples"

# What an arm that was dropped is slower than, if it is not the same of all.
ANOTHER = "another"

ERROR = Severity.ERROR


# --- the best of many ---


class MayBeBest(Note):
    """Any of ``names`` may be the fastest, and ``more`` others."""

    template = "can't be told from the fastest: {names}[, and {more} more]"

    names: tuple[str, ...]
    more: int | None = None


class Dropped(Note):
    """These ``names`` were dropped after ``first`` complete blocks, or up to ``last``: ``faster`` is faster."""

    template = "after {first}[ to {last}] blocks, as slower than {faster}: {names}[, and {more} more]"

    first: int
    last: int | None
    faster: str  # an arm, or ANOTHER
    names: tuple[str, ...]
    more: int | None = None


# --- the limit on memory ---


class OverLimit(Caution):
    """The peak memory of ``arms``, and of ``more``, is above the ``limit``, a share of their reference's."""

    template = "more than {limit:exact_percent} above the reference, so out: {arms:list}[, and {more} more]"

    limit: float
    arms: tuple[Message, ...]
    more: int | None = None


class ArmOverLimit(Note):
    """The peak memory of an arm and of its reference, in bytes; ``memory`` is GPU for that of a GPU."""

    template = "{arm} {peak_bytes:size} against {reference_bytes:size}[ on the {memory}] (+{share:percent})"

    arm: str
    peak_bytes: float
    reference_bytes: float
    share: float
    memory: str | None = None


class LimitUnchecked(Caution):
    """Peak memory of these ``arms`` is unknown, or does not compare with that of their reference."""

    template = "not compared with --max-memory {limit:exact_percent}, as no comparable peak is known: {arms:list}"

    limit: float
    arms: tuple[str, ...]


class WithinLimit(Note):
    template = "every profile needs at most {limit:exact_percent} more than the reference"

    limit: float


# --- settings ---


class AllVerified(Note):
    """Every process had all settings; ``number`` is None for one setting."""

    template = "[{number:all} ]verified in every process"

    number: int | None = None


class SomeVerified(Caution):
    template = "{number} of {of} verified in every process; not verified: {keys} ({reason})"

    number: int
    of: int
    keys: tuple[str, ...]
    reason: Message


class ArmsVerified(Note):
    template = "verified in every process: {number} of {of} {things}[; not in effect: {wrong}][; in part: {partly}]"

    number: int
    of: int
    things: str
    wrong: tuple[str, ...] = ()
    partly: tuple[str, ...] = ()


class SomeArmsVerified(ArmsVerified):
    """Some of them are not in effect, or in part."""

    severity = Severity.WARNING


class NothingToVerify(Note):
    template = "nothing to verify: {arm} expects nothing"

    arm: str


class SeenFromOutside(Note):
    template = "{reason}"

    reason: Message


class CheckedIn(Note):
    """In how many processes of ``arm`` a setting was looked for that is not in effect."""

    template = "checked in {processes:count process|processes} of {arm}"

    processes: int
    arm: str


class NotVerifiedYet(Note):
    template = "not verified: no process ended"


# --- losses ---


class LossesIdentical(Note):
    template = "identical over {steps:count step}[ for {arms}]"

    steps: int
    arms: str | None = None


class LossesPrintedAlike(Note):
    """Those that a user's command prints, so many in each sample."""

    template = "equal within the last printed digit ({losses} in each sample)[ for {arms}]"

    losses: int
    arms: str | None = None


class LossesRounded(Note):
    template = "equal within rounding (at most {largest:.1e}) over {steps:count step}[ for {arms}]"

    largest: float
    steps: int
    arms: str | None = None


class LossesNear(Note):
    """Means over samples of a user's command, whose own samples are ``own`` apart."""

    template = "within {largest:percent} of {reference}'s; its own runs vary by {own:percent}[ ({arms})]"

    largest: float
    own: float
    reference: str
    arms: str | None = None


class LossesFarther(Message):
    """Losses that differ more than rounding explains; ``largest`` is None where a loss is no number."""

    severity = ERROR
    template = "DIFFER[ by up to {largest:percent}][ for {arms}, not counted as faster]: results change"

    largest: float | None
    arms: str | None = None


class LossesOfOtherTraining(Note):
    template = "not compared for {arms}: other workloads ({workloads}); {quantity} are compared"

    arms: str
    workloads: tuple[str, ...]
    quantity: str


class LossesNotCompared(Note):
    """Why the losses of a run are not compared."""

    template = "not compared: {reason}"

    reason: str  # one of those above


# --- noise ---


class Undisturbed(Note):
    template = "no interference detected in {blocks:count block}[ ({size})]"

    blocks: int
    size: str | None = None


class WithoutDisturbed(Note):
    """The result of the other blocks alone."""

    template = "[{arm} ]without them {ratio:ratio}x (95% CI {low:ratio} to {high:ratio})[: {verdict}]"

    ratio: float
    low: float
    high: float
    verdict: str | None = None  # if it is another one
    arm: str | None = None  # if there are several


class OtherInDisturbed(Caution):
    """Interference changed the effect itself."""

    template = "[{arm} ]{ratio:ratio}x in the {blocks:count disturbed block}: the speedup differs under load"

    ratio: float
    blocks: int
    arm: str | None = None  # if there are several


class MoreInDisturbed(Caution):
    template = "and {more} more whose speedup differs under load"

    more: int


class TooFewWithout(Caution):
    template = "too few undisturbed blocks are left[ for {arms}]"

    arms: tuple[str, ...] = ()


class VerdictsWithout(Note):
    template = "without them {changed}"

    changed: tuple[Message, ...]


class OfSubject(Note):
    """A state of an arm, or the title of a profile."""

    template = "{subject}: {words}"

    subject: str
    words: str


class SameWithout(Note):
    template = "without them all verdicts are the same"


class Disturbed(Caution):
    template = "{disturbed} of {blocks} blocks disturbed[ (e.g. {example})][; {rest}][; a block is {size}]"

    disturbed: int
    blocks: int
    example: Message | None = None
    rest: Message | None = None
    size: str | None = None  # what a block is


class PaceVaried(Caution):
    """The reference kernel's longest time over its shortest, without any interference that was counted."""

    template = "the machine's own speed varied {ratio:.1f}x during the run, cause unknown"

    ratio: float


# --- why ---


class SystemTimeChanged(Note):
    template = "system time {moved} from {before:percent} to {after:percent}[: {cause}][; {covered}]"

    moved: str
    before: float
    after: float
    cause: str | None = None
    covered: Message | None = None


class FaultsChanged(Note):
    template = "page faults {moved} from {before:,.0f} to {after:,.0f} per {unit}[: {cause}][; {covered}]"

    moved: str
    before: float
    after: float
    unit: str
    cause: str | None = None
    covered: Message | None = None


class Covered(Note):
    """How much of the CPU time that was saved, or added, is the kernel's."""

    template = "{share:percent} of the CPU time {saved} is system time"

    share: float
    saved: str


class FastestMkl(Note):
    template = "MKL uses its fastest code for this CPU"


class CauseUnknown(Note):
    template = "cause unknown: system time and page faults are about the same"


class SettingsDo(Note):
    template = "{settings} {effect}"

    settings: tuple[str, ...]
    effect: str


# --- the machine and the record ---


class System(Note):
    template = "{cpu}, {cpus:count CPU}[, {gpu}], {engines}, {training}"

    cpu: str
    cpus: int
    gpu: str | None
    engines: tuple[str, ...]
    training: Message


class Torch(Note):
    """The version of an engine's torch; ``engine`` if it is not this machine's own Python."""

    template = "[{engine} with ]torch {version}"

    version: str | None
    engine: str | None = None


class Details(Advice):
    template = "{command:command}"

    command: tuple[str, ...]


class LeftOut(Note):
    template = "{number:count profile}: see --details"

    number: int
