"""Messages on the statistics of a result and on the settings that workers observed. Times are in seconds."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

# Captions of sections.
HOW_TO_READ_EVIDENCE = (
    "expected: what the profile promises; seen: what the worker observed in its own process, in the sample with the "
    "fewest settings in effect"
)
NOTHING_OBSERVED = "no sample was measured, so nothing was observed"
TOO_FEW_FOR_STATISTICS = "too few blocks were measured for statistics"
ONE_ENVIRONMENT = "there is only one environment, so nothing was compared"
NO_FINDING = "no finding"

SETS_NOTHING = "sets nothing"

PRECISE_ENOUGH = "stopped early: precise enough"
# How variables came to be, or not to be, in a training's environment.
SET_BY_COMMAND = "set by the command itself"
NOT_PASSED_ON = "not passed on from your environment"
KEPT = "kept from your environment"
# The processes in which settings were verified.
EVERY, FIRST = "every process", "its first process"


class Compared(Note):
    """The result of one comparison; ``verdict`` in capitals."""

    template = "{ratio:ratio}x (95% CI {low:ratio} to {high:ratio}): {verdict}[, {load}]"

    ratio: float
    low: float
    high: float
    verdict: str
    load: Message | None = None


class RatioAlone(Note):
    template = "{ratio:ratio}x from one run each, no confidence interval"

    ratio: float


class NoSpeedup(Caution):
    template = "no speedup: {verdict}"

    verdict: str


# --- blocks, errors and noise ---


class BlocksMeasured(Note):
    template = "{blocks} ({ended})"

    blocks: int
    ended: str


class SpansBlocks(Caution):
    """So few blocks give no narrower interval at the error rate; ``blocks`` do."""

    template = "an interval spans all blocks, from the lowest ratio to the highest; measure {blocks} or more blocks"

    blocks: int


class ErrorRate(Note):
    template = "false-positive rate at most {rate:exact_percent}[, for all {comparisons} comparisons together]"

    rate: float
    comparisons: int | None = None  # if there are several


class TotalTime(Note):
    """A ratio of summed times, in which slow blocks weigh more than in the speedup."""

    template = "all samples together: {ratio:ratio}x[ ({arm})]"

    ratio: float
    arm: str | None = None  # if there are several


class OtherTotalTime(TotalTime):
    """It lies outside of the speedup's interval."""

    template = TotalTime.template + ", outside of the interval: slow blocks had another speedup"


class NoiseFloor(Note):
    """``calibrated`` is the date of the calibration."""

    template = (
        "baseline against itself stays within {low:ratio}x to {high:ratio}x in 95% of such runs"
        "[ (measured {calibrated})]"
    )

    low: float
    high: float
    calibrated: str | None = None


class OwnNoiseFloor(NoiseFloor):
    """The noise floor that a calibration measures itself."""

    template = (
        "baseline against itself stays within {low:ratio}x to {high:ratio}x in 95% of such runs; "
        "later runs use it while this record stays in results/"
    )


class NoNoiseFloor(Note):
    template = "unknown; measure it with: envkit plan"


class KernelTimes(Caution):
    """The fastest and the slowest run of the reference kernel, in milliseconds."""

    template = (
        "the reference kernel took {least_ms:.0f} to {most_ms:.0f} ms, cause unknown; "
        "neighbours on a shared host may use its cores, caches or memory"
    )

    least_ms: float
    most_ms: float


class ReferenceDrifted(Note):
    template = "{reference} ended at {ratio:ratio}x its initial speed; pairing in blocks cancels this"

    reference: str
    ratio: float


class OverBudget(Note):
    template = "a verdict took {takes_s:duration}; the budget was {budget_s:duration}"

    takes_s: float
    budget_s: float


class FirstRuns(Note):
    template = "{times:list}, in one process each: no comparison"

    times: tuple[Message, ...]


class FirstTime(Note):
    template = "{arm} {ms:,.2f} ms per {step}"

    arm: str
    ms: float
    step: str


class Variables(Note):
    """Variables of a training that come from elsewhere than a profile. ``source`` is one of those above."""

    template = "{source}: {variables:list}"

    source: str
    variables: tuple[str, ...]


# --- warm-up and design ---


class SteadyFrom(Note):
    """The first timed step from which on no arm is warming up any more."""

    template = "steady from step {first} on; the first {left_out} of each sample are left out"

    first: int
    left_out: int


class StepsLeftOut(Note):
    """Steps left out of each of several workloads, or their range."""

    template = "steps left out at the start of each sample: [{each:list}][{least}][ to {most}]"

    each: tuple[Message, ...] = ()
    least: int | None = None
    most: int | None = None


class Numbered(Note):
    """A name with its number."""

    template = "{name} {number}"

    name: str
    number: int


class SampleTooShort(Note):
    template = "not measured: a sample has fewer than 40 {unit}[; the first {left_out} are left out][; add {option}]"

    unit: str  # steps or readings
    left_out: int | None = None
    option: str | None = None


class CommandIsOneStep(Note):
    template = "not measured: the whole command is one step; leave out --whole-command to time its optimizer's steps"


class NoInterimAnalyses(Note):
    template = "no interim analyses"


class InterimAnalyses(Note):
    """``comparisons`` share the error rate, if there are several."""

    template = (
        "{planned:count block} planned, analyses after {looks:list}: group-sequential at {rate:exact_percent} "
        "(Hwang-Shih-DeCani spending)[, shared by {comparisons} comparisons]"
    )

    planned: int
    looks: tuple[int, ...]
    rate: float
    comparisons: int | None = None


# --- what was observed ---


class ArmNotInEffect(Message):
    template = "{arm} is NOT IN EFFECT[: {missed:lines}]"

    arm: str
    missed: tuple[Message, ...]


class MissedUnseen(Message):
    """A setting that the worker could not observe."""

    template = "{key}: expected {expected}, not seen"

    key: str
    expected: str


class ArmVerified(Note):
    """How many settings of an arm were verified, and in which of its ``processes``: EVERY or FIRST."""

    template = "{arm}: {number}[ of {of}] verified in {processes}"

    arm: str
    number: int
    of: int | None
    processes: str


class ExpectsNothing(Note):
    """A profile expects nothing. ``also`` is SETS_NOTHING if it sets nothing either."""

    template = "{arm}: [{also} and ]expects nothing"

    arm: str
    also: str | None = None


class WorkerFailure(Message):
    """``node`` is where, if there are several."""

    template = "[{node}: ]block {block}, {arm}: the worker {problem}"

    block: int
    arm: str
    problem: Message
    node: str | None = None
