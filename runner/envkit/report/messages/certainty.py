"""Messages on the statistics of a result and on the settings that workers observed. Times are in seconds."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note


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


class StoppedEarly(Note):
    template = "{blocks} (stopped early: precise enough)"

    blocks: int


class ErrorRate(Note):
    template = "false-positive rate at most {rate:exact_percent}[, for all {comparisons} comparisons together]"

    rate: float
    comparisons: int | None = None  # if there are several


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


class SetByCommand(Note):
    template = "set by the command itself: {variables:list}"

    variables: tuple[str, ...]


class NotPassedOn(Note):
    template = "not passed on from your environment: {variables:list}"

    variables: tuple[str, ...]


class KeptVariables(Note):
    template = "kept from your environment: {variables:list}"

    variables: tuple[str, ...]


# --- warm-up and design ---


class SteadyAfter(Note):
    template = "steady after {steps:count step}; the first {left_out} of each sample are left out"

    steps: int
    left_out: int


class SteadyAtOnce(Note):
    template = "steady from the first step on; the first {left_out} of each sample are left out"

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
    template = "not measured: a sample has fewer than 100 {unit}[; the first {left_out} are left out][; add {option}]"

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
        "(O'Brien-Fleming spending)[, shared by {comparisons} comparisons]"
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
    template = "{arm}: {number} of {of} verified in every process"

    arm: str
    number: int
    of: int


class ArmVerifiedFirst(Note):
    template = "{arm}: {number} verified in its first process"

    arm: str
    number: int


class KeyNotVerified(Caution):
    template = "{arm}: {key} not verified: {reason}"

    arm: str
    key: str
    reason: Message


class SettingsOfArm(Note):
    """Whether the settings of an arm are in effect, in a word."""

    template = "{arm}: {state}"

    arm: str
    state: str


class ExpectsNothing(Note):
    template = "{arm}: expects nothing"

    arm: str


class SetsNothing(Note):
    template = "{arm}: sets nothing and expects nothing"

    arm: str


class HowToReadEvidence(Note):
    template = (
        "expected: what the profile promises; seen: what the worker observed in its own process, "
        "in the sample with the fewest settings in effect"
    )


class NothingObserved(Note):
    template = "no sample was measured, so nothing was observed"


class TooFewForStatistics(Note):
    template = "too few blocks were measured for statistics"


class OneEnvironment(Note):
    template = "there is only one environment, so nothing was compared"


class NoFinding(Note):
    template = "no finding"


class WorkerFailure(Message):
    """``node`` is where, if there are several."""

    template = "[{node}: ]block {block}, {arm}: the worker {problem}"

    block: int
    arm: str
    problem: Message
    node: str | None = None
