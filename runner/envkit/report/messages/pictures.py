"""Messages of pictures: reasons for a missing one, axes and legends."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE = Severity.NOTE


# --- reasons for a missing picture ---


class NoComparison(Message):
    code = "report.no-comparison"
    severity = NOTE
    template = "nothing was compared"


class NoIntervalOfOneRun(Message):
    code = "report.no-interval-of-one-run"
    severity = NOTE
    template = "one run each gives a ratio, but no confidence interval"


class NoInterval(Message):
    code = "report.no-interval"
    severity = NOTE
    template = "no profile has a confidence interval"


class NoSample(Message):
    code = "report.no-sample"
    severity = NOTE
    template = "no sample was measured"


class NoEpochEnded(Message):
    code = "report.no-epoch-ended"
    severity = NOTE
    template = "no measured sample reached the end of an epoch"


class NoCourse(Message):
    code = "report.no-course"
    severity = NOTE
    template = "one sample each shows no trend"


class NoLoaderSettings(Message):
    code = "report.no-loader-settings"
    severity = NOTE
    template = "the run measured no settings of the DataLoader"


class NoTests(Message):
    code = "report.no-tests"
    severity = NOTE
    template = "no training was tested after its epochs"


# --- axes ---


class TimeOver(Message):
    """The axis of speedups; ``thing`` is what is compared."""

    code = "report.time-over"
    severity = NOTE
    template = "{reference}'s time / the {thing}'s time (logarithmic)"

    reference: str
    thing: str


class WithoutOver(Message):
    """Rows of an ablation whose reference is the whole profile."""

    code = "report.without-over"
    severity = NOTE
    template = "without …: {profile}'s time"

    profile: str


class LibraryOver(Message):
    """Rows of an ablation whose reference is a library alone."""

    code = "report.library-over"
    severity = NOTE
    template = "{library} + …: that of {library} alone"

    library: str


class StepMs(Message):
    """The axis of step times; ``scale`` is its scale if it is not linear."""

    code = "report.step-ms"
    severity = NOTE
    template = "ms per {step}[ ({scale})]"

    step: str
    scale: str | None = None


class MeanStepMs(Message):
    code = "report.mean-step-ms"
    severity = NOTE
    template = "mean ms per {step}, the same logarithmic scale for all"

    step: str


class TrainingTime(Message):
    code = "report.training-time"
    severity = NOTE
    template = "{unit} of training, without tests"

    unit: str


class FigureOfTest(Message):
    code = "report.figure-of-test"
    severity = NOTE
    template = "{figure}, of the test after each epoch"

    figure: str


# --- legends and labels ---


class IntervalOfSpeedup(Message):
    code = "report.interval-of-speedup"
    severity = NOTE
    template = "speedup, {confidence:percent} confidence interval"

    confidence: float


class WithinMargin(Message):
    code = "report.within-margin"
    severity = NOTE
    template = "too small to matter (±{margin:exact_percent})"

    margin: float


class WithinNoise(Message):
    code = "report.within-noise"
    severity = NOTE
    template = "noise floor of identical profiles (±{floor:.1%})"

    floor: float


# --- texts that are read out instead of a picture ---


class Alternative(Message):
    code = "report.alternative"
    severity = NOTE
    template = "{picture}. {results:lines}"

    picture: str
    results: tuple[str, ...]


class FiguresInTables(Message):
    code = "report.figures-in-tables"
    severity = NOTE
    template = "the figures are in the tables"
