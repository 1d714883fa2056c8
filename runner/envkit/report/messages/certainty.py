"""Messages on the statistics of a result and on the settings that workers observed. Times are in seconds."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


class Compared(Message):
    """The result of one comparison; ``verdict`` in capitals."""

    code = "report.compared"
    severity = NOTE
    template = "{ratio:ratio}x (95% CI {low:ratio} to {high:ratio}): {verdict}[, {load}]"

    ratio: float
    low: float
    high: float
    verdict: str
    load: Message | None = None


class RatioAlone(Message):
    code = "report.ratio-alone"
    severity = NOTE
    template = "{ratio:ratio}x from one run each, no confidence interval"

    ratio: float


class NoSpeedup(Message):
    code = "report.no-speedup"
    severity = WARNING
    template = "no speedup: {verdict}"

    verdict: str


# --- blocks, errors and noise ---


class BlocksMeasured(Message):
    code = "report.blocks-measured"
    severity = NOTE
    template = "{blocks} ({ended})"

    blocks: int
    ended: str


class StoppedEarly(Message):
    code = "report.stopped-early"
    severity = NOTE
    template = "{blocks} (stopped early: precise enough)"

    blocks: int


class ErrorRate(Message):
    code = "report.error-rate"
    severity = NOTE
    template = "false-positive rate at most {rate:exact_percent}[, for all {comparisons} comparisons together]"

    rate: float
    comparisons: int | None = None  # if there are several


class NoiseFloor(Message):
    """``calibrated`` is the date of the calibration."""

    code = "report.noise-floor"
    severity = NOTE
    template = (
        "baseline against itself stays within {low:ratio}x to {high:ratio}x in 95% of such runs"
        "[ (measured {calibrated})]"
    )

    low: float
    high: float
    calibrated: str | None = None


class OwnNoiseFloor(NoiseFloor):
    """The noise floor that a calibration measures itself."""

    code = "report.own-noise-floor"
    template = (
        "baseline against itself stays within {low:ratio}x to {high:ratio}x in 95% of such runs; "
        "later runs use it while this record stays in results/"
    )


class NoNoiseFloor(Message):
    code = "report.no-noise-floor"
    severity = NOTE
    template = "unknown; measure it with: envkit plan"


class KernelTimes(Message):
    """The fastest and the slowest run of the reference kernel, in milliseconds."""

    code = "report.kernel-times"
    severity = WARNING
    template = (
        "the reference kernel took {least_ms:.0f} to {most_ms:.0f} ms, cause unknown; "
        "neighbours on a shared host may use its cores, caches or memory"
    )

    least_ms: float
    most_ms: float


class ReferenceDrifted(Message):
    code = "report.reference-drifted"
    severity = NOTE
    template = "{reference} ended at {ratio:ratio}x its initial speed; pairing in blocks cancels this"

    reference: str
    ratio: float


class OverBudget(Message):
    code = "report.over-budget"
    severity = NOTE
    template = "a verdict took {takes_s:duration}; the budget was {budget_s:duration}"

    takes_s: float
    budget_s: float


class FirstRuns(Message):
    code = "report.first-runs"
    severity = NOTE
    template = "{times:list}, in one process each: no comparison"

    times: tuple[Message, ...]


class FirstTime(Message):
    code = "report.first-time"
    severity = NOTE
    template = "{arm} {ms:,.2f} ms per {step}"

    arm: str
    ms: float
    step: str


class SetByCommand(Message):
    code = "report.set-by-command"
    severity = NOTE
    template = "set by the command itself: {variables:list}"

    variables: tuple[str, ...]


class NotPassedOn(Message):
    code = "report.not-passed-on"
    severity = NOTE
    template = "not passed on from your environment: {variables:list}"

    variables: tuple[str, ...]


class KeptVariables(Message):
    code = "report.kept-variables"
    severity = NOTE
    template = "kept from your environment: {variables:list}"

    variables: tuple[str, ...]


# --- warm-up and design ---


class SteadyAfter(Message):
    code = "report.steady-after"
    severity = NOTE
    template = "steady after {steps:count step}; the first {left_out} of each sample are left out"

    steps: int
    left_out: int


class SteadyAtOnce(Message):
    code = "report.steady-at-once"
    severity = NOTE
    template = "steady from the first step on; the first {left_out} of each sample are left out"

    left_out: int


class StepsLeftOut(Message):
    """Steps left out of each of several workloads, or their range."""

    code = "report.steps-left-out"
    severity = NOTE
    template = "steps left out at the start of each sample: [{each:list}][{least}][ to {most}]"

    each: tuple[Message, ...] = ()
    least: int | None = None
    most: int | None = None


class Numbered(Message):
    """A name with its number."""

    code = "report.numbered"
    severity = NOTE
    template = "{name} {number}"

    name: str
    number: int


class SampleTooShort(Message):
    code = "report.sample-too-short"
    severity = NOTE
    template = "not measured: a sample has fewer than 100 {unit}[; the first {left_out} are left out][; add {option}]"

    unit: str  # steps or readings
    left_out: int | None = None
    option: str | None = None


class CommandIsOneStep(Message):
    code = "report.command-is-one-step"
    severity = NOTE
    template = "not measured: the whole command is one step; leave out --whole-command to time its optimizer's steps"


class NoInterimAnalyses(Message):
    code = "report.no-interim-analyses"
    severity = NOTE
    template = "no interim analyses"


class InterimAnalyses(Message):
    """``comparisons`` share the error rate, if there are several."""

    code = "report.interim-analyses"
    severity = NOTE
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
    code = "report.arm-not-in-effect"
    template = "{arm} is NOT IN EFFECT[: {missed:lines}]"

    arm: str
    missed: tuple[Message, ...]


class MissedUnseen(Message):
    """A setting that the worker could not observe."""

    code = "report.missed-unseen"
    template = "{key}: expected {expected}, not seen"

    key: str
    expected: str


class ArmVerified(Message):
    code = "report.arm-verified"
    severity = NOTE
    template = "{arm}: {number} of {of} verified in every process"

    arm: str
    number: int
    of: int


class ArmVerifiedFirst(Message):
    code = "report.arm-verified-first"
    severity = NOTE
    template = "{arm}: {number} verified in its first process"

    arm: str
    number: int


class KeyNotVerified(Message):
    code = "report.key-not-verified"
    severity = WARNING
    template = "{arm}: {key} not verified: {reason}"

    arm: str
    key: str
    reason: Message


class SettingsOfArm(Message):
    """Whether the settings of an arm are in effect, in a word."""

    code = "report.settings-of-arm"
    severity = NOTE
    template = "{arm}: {state}"

    arm: str
    state: str


class ExpectsNothing(Message):
    code = "report.expects-nothing"
    severity = NOTE
    template = "{arm}: expects nothing"

    arm: str


class SetsNothing(Message):
    code = "report.sets-nothing"
    severity = NOTE
    template = "{arm}: sets nothing and expects nothing"

    arm: str


class HowToReadEvidence(Message):
    code = "report.how-to-read-evidence"
    severity = NOTE
    template = (
        "expected: what the profile promises; seen: what the worker observed in its own process, "
        "in the sample with the fewest settings in effect"
    )


class NothingObserved(Message):
    code = "report.nothing-observed"
    severity = NOTE
    template = "no sample was measured, so nothing was observed"


class TooFewForStatistics(Message):
    code = "report.too-few-for-statistics"
    severity = NOTE
    template = "too few blocks were measured for statistics"


class OneEnvironment(Message):
    code = "report.one-environment"
    severity = NOTE
    template = "there is only one environment, so nothing was compared"


class NoFinding(Message):
    code = "report.no-finding"
    severity = NOTE
    template = "no finding"


class WorkerFailure(Message):
    """``node`` is where, if there are several."""

    code = "report.worker-failure"
    template = "[{node}: ]block {block}, {arm}: the worker {problem}"

    block: int
    arm: str
    problem: Message
    node: str | None = None
