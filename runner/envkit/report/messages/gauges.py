"""The gauges that are exported as OpenMetrics text: name, unit at the end of the name, column, and help text."""

from __future__ import annotations

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
