"""Verdicts: the first line of a report.

Speedups are ratios over the reference's speed: above 1 is faster. Shares are of 1, sizes in bytes, times in seconds.
"""

from __future__ import annotations

from envkit.messages import Caution, Message, Note, Severity

WARNING = Severity.WARNING
CI = "(95% CI {low:ratio} to {high:ratio})"
BEST_OF_MANY = "{number} of {of} {things}, best[ {among}] {best}: {ratio:ratio}x {reference} speed " + CI + "[, {load}]"
WINNER = "{winner}, of {of:count profile}; few samples chose it, so this claims nothing yet"
SPEEDUP = "{ratio:ratio}x {reference} {quantity}[ to {target}] " + CI + "[, {load}]"


# --- verdicts of one comparison ---


class Found(Note):
    """A comparison that has an interval. ``load`` is what it was measured beside, where that matters."""

    template = "{subject}: " + SPEEDUP

    subject: str
    reference: str
    ratio: float
    low: float
    high: float
    quantity: str = "speed"
    target: str | None = None
    load: Message | None = None


class Faster(Found):
    template = "FASTER  {subject}: " + SPEEDUP


class FasterUnderLoad(Found):
    severity = WARNING
    template = "FASTER UNDER LOAD  {subject}: " + SPEEDUP


class FasterLossesDiffer(Found):
    severity = WARNING
    template = "FASTER, BUT LOSSES DIFFER  {subject}: " + SPEEDUP


class FasterOverMemory(Found):
    """Its peak memory is above the limit of the run."""

    severity = WARNING
    template = "FASTER, BUT OVER THE MEMORY LIMIT  {subject}: " + SPEEDUP


class Slower(Found):
    severity = WARNING
    template = "SLOWER  {subject}: " + SPEEDUP


class SlowerUnderLoad(Found):
    severity = WARNING
    template = "SLOWER UNDER LOAD  {subject}: " + SPEEDUP


class Equivalent(Found):
    """``margin`` is the smallest relevant difference, as a share."""

    template = "SAME SPEED WITHIN {margin:exact_percent}  {subject}: " + SPEEDUP

    margin: float = 0.0


class NoDifferenceFound(Found):
    template = "NO DIFFERENCE FOUND  {subject}: " + SPEEDUP


class NoDifferenceUnderLoad(Found):
    severity = WARNING
    template = "NO DIFFERENCE FOUND UNDER LOAD  {subject}: " + SPEEDUP


class Efficiency(Found):
    """Weak scaling: the speed of a rank over that of ``reference``."""

    template = "EFFICIENCY  {subject}: {ratio:ratio}x {reference} {quantity} " + CI + "[, {load}]"


class OneRunEach(Note):
    """A ratio of one training each; ``of`` counts ``things`` of which the subject is the best."""

    template = (
        "ONE RUN EACH  [best of {of} {things}, ]{subject}: {ratio:ratio}x {reference} speed[ to {target}], "
        "no confidence interval"
    )

    subject: str
    reference: str
    ratio: float
    target: str | None = None
    of: int | None = None
    things: str | None = None


# --- why there is no speedup ---


class NotInEffect(Message):
    template = "NOT IN EFFECT  {arm}: no speedup is reported"

    arm: str


class WorkerFailed(Message):
    template = "FAILED  {arm}: no speedup is reported"

    arm: str
    problem: Message


class Unfinished(Caution):
    """A run that was cut short, or still goes on."""

    template = (
        "UNFINISHED  {subject}: {blocks:count complete block} (one sample of each)[, and a verdict needs {fewest}]"
    )

    subject: str
    blocks: int
    fewest: int | None = None


class TooFewBlocks(Caution):
    template = "NO VERDICT  {subject}: {blocks:count complete block} (one sample of each), and a verdict needs {fewest}"

    subject: str
    blocks: int
    fewest: int


class TargetNotReached(Message):
    """``best`` is the nearest that it came."""

    template = "TARGET NOT REACHED  {arm}: not {target} in {epochs:count epoch}[ (best: {best:.4g})]"

    arm: str
    target: str
    epochs: int
    best: float | None = None


class NothingCompared(Note):
    template = "ONE PROFILE  {subject}: nothing was compared with it[; {load}]"

    subject: str
    load: Message | None = None


class NothingMeasured(Caution):
    template = "NO RESULT  no sample was measured"


# --- verdicts of many comparisons, and of loaders ---


class Counted(Note):
    """How many comparisons came to the same; ``kind`` is their verdict."""

    template = "{number} {kind}"

    number: int
    kind: str


class OfMany(Note, abstract=True):
    """The best to use of those that are faster.

    ``losses_differ`` counts others whose losses differ. ``among`` says why the best is not the fastest.
    """

    number: int
    of: int
    things: str
    best: str
    reference: str
    ratio: float
    low: float
    high: float
    counts: tuple[Counted, ...] = ()
    losses_differ: int | None = None  # of them the table tells
    load: Message | None = None
    among: str | None = None


class SomeFaster(OfMany):
    """Their losses are the same."""

    template = "FASTER  " + BEST_OF_MANY


class SomeFasterUnderLoad(OfMany):
    severity = WARNING
    template = "FASTER UNDER LOAD  " + BEST_OF_MANY


class SomeFasterLossesDiffer(OfMany):
    """The losses of all of them differ."""

    severity = WARNING
    template = "FASTER, BUT LOSSES DIFFER  " + BEST_OF_MANY


class SomeFasterOverMemory(OfMany):
    """The peak memory of all of them is above the limit; the best's is above its reference's by the ``share``."""

    severity = WARNING
    template = "FASTER, BUT OVER THE MEMORY LIMIT  " + BEST_OF_MANY + ", {share:percent} more memory"

    share: float = 0.0


class NoneFaster(Note):
    template = "NONE FASTER  {of} {things} against {reference}: {counts}[, {load}]"

    of: int
    things: str
    reference: str
    counts: tuple[Counted, ...]
    load: Message | None = None


class NoneFasterWithinLimit(NoneFaster):
    """An arm left for its memory before its speed was known."""

    template = "NONE FASTER WITHIN THE MEMORY LIMIT  {of} {things} against {reference}: {counts}[, {load}]"


class NoResults(Caution):
    template = "NO RESULT  for any of {of} {things}: {counts}"

    of: int
    things: str
    counts: tuple[Counted, ...]


class RaceWon(Note):
    """A race of so many profiles has ended. It has no interval, so it has no verdict."""

    template = "FASTEST IN THE RACE  " + WINNER

    winner: str
    of: int


class RaceWonWithinLimit(RaceWon):
    """Others were above the limit on memory."""

    template = "FASTEST IN THE RACE WITHIN THE MEMORY LIMIT  " + WINNER


class RaceWonOverLimit(RaceWon):
    """The winner is above the limit on memory, as all others that were measured."""

    template = "FASTEST IN THE RACE, BUT OVER THE MEMORY LIMIT  " + WINNER


class RaceFailed(Message):
    """No profile of a race is left that could win. ``counts`` are of those that did not leave as slower."""

    template = "FAILED  none of {of:count profile} is left in the race: {counts}"

    of: int
    counts: tuple[Counted, ...]


class RaceUnfinished(Caution):
    """A race was cut short. ``leader`` was the fastest so far."""

    template = "RACE UNFINISHED  {leader} is the fastest after {blocks:count complete block}; this claims nothing"

    leader: str
    blocks: int


class FastestLoader(Note):
    """``seconds`` and ``slowest`` are those of so many images."""

    template = (
        "FASTEST  {setting}: {seconds:.2f} s per {images} images (slowest of {of} settings: {slowest:.2f} s)[, {load}]"
    )

    of: int
    setting: str
    seconds: float
    slowest: float
    images: int
    load: Message | None = None


class NoFastestLoader(Note):
    """So many ``ties``, the best among them, have samples that overlap with the best's."""

    template = (
        "NO CLEAR WINNER  {ties} of {of} settings may be the fastest; lowest median: {setting}: "
        "{seconds:.2f} s per {images} images[, {load}]"
    )

    ties: int
    of: int
    setting: str
    seconds: float
    images: int
    load: Message | None = None


class FastestEpochs(Note):
    """Seconds for an epoch, and of these the seconds until its first step is done."""

    template = (
        "FASTEST  {setting}: {epoch_s:.2f} s per epoch, {begin_s:.2f} s of it to begin "
        "(slowest of {of} settings, {slowest}: {slowest_epoch_s:.2f} s, {slowest_begin_s:.2f} s to begin)[, {load}]"
    )

    of: int
    setting: str
    epoch_s: float
    begin_s: float
    slowest: str
    slowest_epoch_s: float
    slowest_begin_s: float
    load: Message | None = None
