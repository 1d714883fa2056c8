"""Titles, column titles, captions and fixed cells of reports: tables of plain literals."""

from __future__ import annotations

# --- sections and pictures ---

SECTIONS = {
    "speedups": "Speedups",
    "took": "Times",
    "certainty": "Statistics",
    "learning": "Learning curves",
    "findings": "Findings",
    "step-times": "Step times",
    "course": "Course of the run",
    "evidence": "Evidence: settings observed in the workers",
    "differences": "Differences between the environments",
    "reproduce": "How to reproduce it",
}
BY_HAND = "by hand  (one sample each)"
DISTURBANCES = "Disturbed samples, and what disturbed them"
PICTURES = {
    "forest": "Speedup",
    "distributions": "Step times",
    "time-course": "Course of the run",
    "grid": "Time of the input",
    "epoch-ends": "Ends of epochs",
    "learning-curves": "Learning curves",
}
# How to read each picture.
READING = {
    "forest": "Each square is a speedup, and the line through it its confidence interval. An interval that "
    "excludes 1 shows a difference. Green is faster, orange slower, blue neither.",
    "distributions": "Distribution of step times: all timed steps of all samples. The axis leaves out the "
    "slowest and fastest 0.5%; the slowest step is given as a number.",
    "learning-curves": "One point for each epoch, at the training time so far, without tests: its training loss, and "
    "the figures of the test after it.",
    "grid": "One line for each number of workers: the median of its samples, with the minimum and maximum.",
    "epoch-ends": "The time until the first step of an epoch is done: the median of the samples, with the "
    "minimum and maximum.",
    "time-course": "One point for each sample, at the time when it began. Equal distances are equal percentages "
    "everywhere.",
}
READING_EPOCHS = (
    "training: the time of all steps so far, without tests; loss: the mean over the epoch's batches; testing: the time "
    "of the test after it."
)
# --- axes and legends of pictures ---

MINUTES = "minutes of measuring"
SECONDS_TO_BEGIN = "seconds to begin an epoch; by new workers, or by persistent ones"
MEAN_LOSS = "training loss, the mean of each epoch"
SAME_WITHOUT_DISTURBED = "the same without disturbed blocks"
MIDDLE_HALF = "middle half of all steps, and their median"
NEARLY_ALL = "from 1% to 99% of all steps"
MEDIAN_OF_SAMPLE = "median of one sample"
DISTURBED_SAMPLE = "disturbed from outside"
BESIDE_DISTURBED = "in the same block as a disturbed one"

# --- columns, and cells with words ---

# What a block is, where ``report.medians`` does not say it.
ONE_OF_EACH = "one sample of each"
LEARNT = "what was learnt"
TRAINED = ("workload", "a step", "ms", "/s", "loss", LEARNT)
DISTURBED = ("block", "sample and reason")
EPOCH_ENDS = ("start", "persistent", "s to begin", "min to max", "ms/batch", "s/epoch")
OPERATORS, PHASES, BATCHES = "ms per step", "ms per step", "ms per batch"
WITHOUT_PROFILER = "without the profiler"
# Of a race: speeds are shares of the winner's, and the last column says when an arm left, or why.
RACE = ("profile", "speed", "blocks", "left")
TO_THE_END, RACER_FAILED, RACER_NOT_IN_EFFECT = "", "failed", "not in effect"
EXPECTED = ("profile", "expected", "7 of 10 lie within", "because")
ORDER = ("profile", "because")
THEN_AND_NOW = "speed now over speed then"
THEN_AND_NOW_NORMALISED = "speed now over speed then; normalised: at an equal reference kernel"
# What a table of many comparisons says of a difference, by the name of the verdict.
LOSSES_DIFFER = "losses differ"  # of what would be faster with the same losses
DIFFERENCES = {"FASTER": "faster", "SLOWER": "slower", "NOT_FOUND": "none found"}
NO_SPEEDUP = {"NOT_IN_EFFECT": "NOT IN EFFECT", "TOO_FEW_SAMPLES": "too few blocks"}
UNDER_LOAD = ", under load"
OVER_MEMORY = ", over memory"
# Of the best of many, where a faster one has cautions.
WITHOUT_CAUTIONS = "without cautions"
# How many of several comparisons came to what.
COUNTED = {
    "not-in-effect": "not in effect",
    "no-result": "without a result",
    "failed": "failed",
    "losses-differ": "with other losses",
    "over-memory": "over the memory limit",
    "not-found": "without a difference found",
}
# What one setting of an ablated profile does, and what several do, by the name of the contribution.
EFFECTS = {
    "ALONE": ("gives the speedup alone", "each give the speedup alone"),
    "NEEDED": ("is needed", "are needed"),
    "TOGETHER": ("helps only together with others", "help only together with others"),
    "REPLACED": ("helps alone, but others replace it", "help alone, but others replace each"),
    "HELPS": ("helps alone", "each help alone"),
    "COSTS": ("costs time", "cost time"),
    "EQUIVALENT": ("makes no relevant difference", "make no relevant difference"),
    "NOT_FOUND": ("has no detectable effect", "have no detectable effect"),
}
# Where a step's time goes, by the kind of operator.
OPERATOR_KINDS = {
    "matrix": "matrix products",
    "recurrent": "recurrent layers",
    "convolution": "convolutions",
    "moving": "copying and filling memory",
    "other": "other operators",
    "outside": "outside of operators",
}
NOT_MEASURED = "not measured yet"
GAINED, NOT_GAINED = "similar trainings became faster", "similar trainings did not become faster"
QUANTITIES = {"trainings": "whole trainings", "images": "times per image", "ranks": "speed per rank"}
DEFAULT_MODES = "fp32, not compiled, usual memory layout"
PRINTED_NOTHING = "It printed nothing."
NOT_ENDED = "not ended"

# The gauges that are exported as OpenMetrics text: name, unit at the end of the name, column, and help text.
GAUGES = (
    (
        "envkit_speedup_ratio", "ratio", "ratio",
        "Time per item of the reference divided by that of this arm: above 1 it is faster.",
    ),
    ("envkit_speedup_low_ratio", "ratio", "low", "Lower end of the confidence interval of the speedup."),
    ("envkit_speedup_high_ratio", "ratio", "high", "Upper end of the confidence interval of the speedup."),
    ("envkit_step_seconds", "seconds", "step_s", "Time of a training step, the median over samples."),
    (
        "envkit_communication_ratio", "ratio", "communication_share",
        "Share of a step in which one of several ranks communicates or waits, under the profiler.",
    ),
    ("envkit_samples", "", "samples", "Samples that were measured, each a fresh process."),
    ("envkit_in_effect", "", "in_effect", "1 if every worker observed what the profile expects, otherwise 0."),
)  # fmt: skip
