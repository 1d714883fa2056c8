"""Messages of pictures: reasons for a missing one, axes and legends."""

from __future__ import annotations

from envkit.messages import Note

FIGURES_IN_TABLES = "the figures are in the tables"

# Why a picture is not drawn.
NO_COMPARISON = "nothing was compared"
ONE_RUN_EACH = "one run each gives a ratio, but no confidence interval"
NO_INTERVAL = "no profile has a confidence interval"
NO_SAMPLE = "no sample was measured"
NO_EPOCH_ENDED = "no measured sample reached the end of an epoch"
NO_COURSE = "one sample each shows no trend"
NO_LOADER_SETTINGS = "the run measured no settings of the DataLoader"
NO_TESTS = "no training was tested after its epochs"

# --- reasons for a missing picture ---


# --- axes ---


class TimeOver(Note):
    """The axis of speedups; ``thing`` is what is compared."""

    template = "{reference}'s time / the {thing}'s time (logarithmic)"

    reference: str
    thing: str


class WithoutOver(Note):
    """Rows of an ablation whose reference is the whole profile."""

    template = "without …: {profile}'s time"

    profile: str


class LibraryOver(Note):
    """Rows of an ablation whose reference is a library alone."""

    template = "{library} + …: that of {library} alone"

    library: str


class StepMs(Note):
    """The axis of step times; ``scale`` is its scale if it is not linear."""

    template = "ms per {step}[ ({scale})]"

    step: str
    scale: str | None = None


class MeanStepMs(Note):
    template = "mean ms per {step}, the same logarithmic scale for all"

    step: str


class TrainingTime(Note):
    template = "{unit} of training, without tests"

    unit: str


class FigureOfTest(Note):
    template = "{figure}, of the test after each epoch"

    figure: str


# --- legends and labels ---


class IntervalOfSpeedup(Note):
    template = "speedup, {confidence:percent} confidence interval"

    confidence: float


class WithinMargin(Note):
    template = "too small to matter (±{margin:exact_percent})"

    margin: float


class WithinNoise(Note):
    template = "noise floor of identical profiles (±{floor:.1%})"

    floor: float


# --- texts that are read out instead of a picture ---


class Alternative(Note):
    template = "{picture}. {results:lines}"

    picture: str
    results: tuple[str, ...]
