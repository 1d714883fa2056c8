"""Messages of full trainings, of ranks that train together, and of several trainings at once."""

from __future__ import annotations

from envkit.messages import Message, Severity

NOTE = Severity.NOTE


class LossesOfOtherBatch(Message):
    code = "report.losses-of-other-batch"
    severity = NOTE
    template = "not compared: {ranks} ranks train on {ranks} times the batch"

    ranks: int


class TargetReached(Message):
    """Seconds of training and of testing; the speedup over the reference, if it is of another arm."""

    code = "report.target-reached"
    severity = NOTE
    template = "{arm}: {target} after {seconds:.1f} s and {epochs:count epoch}, with {testing_s:.1f} s of tests besides"

    arm: str
    target: str
    seconds: float
    epochs: int
    testing_s: float


class RanksSpeedup(Message):
    code = "report.ranks-speedup"
    severity = NOTE
    template = (
        "{arm} on {ranks} ranks: {ratio:ratio}x the speed of {reference} (95% CI {low:ratio} to {high:ratio})"
        "[; efficiency {efficiency}]"
    )

    arm: str
    ranks: int
    reference: str
    ratio: float
    low: float
    high: float
    efficiency: Message | None = None


class RanksRate(Message):
    """Weak scaling: rates, as the batch grows with the ranks."""

    code = "report.ranks-rate"
    severity = NOTE
    template = (
        "{arm} on {ranks} ranks, {ranks} times the batch: {ratio:ratio}x the {unit}/s of {reference} "
        "(95% CI {low:ratio} to {high:ratio})[; efficiency {efficiency}]"
    )

    arm: str
    ranks: int
    unit: str
    reference: str
    ratio: float
    low: float
    high: float
    efficiency: Message | None = None


class Interval(Message):
    code = "report.interval"
    severity = NOTE
    template = "{ratio:ratio} ({low:ratio} to {high:ratio})"

    ratio: float
    low: float
    high: float


class RanksWait(Message):
    """By the profiler, under which steps take longer. ``low`` and ``high`` are of the ranks."""

    code = "report.ranks-wait"
    severity = NOTE
    template = "{arm}'s ranks communicate or wait for {share:percent} of a step, by the profiler[ ({by_rank} by rank)]"

    arm: str
    share: float
    by_rank: str | None = None


class AllReduce(Message):
    code = "report.all-reduce"
    severity = NOTE
    template = "bus bandwidth (size over time, times {factor:g} for {ranks} ranks): {sizes}"

    ranks: int
    factor: float
    sizes: tuple[str, ...]


class RanksLosses(Message):
    """Beside those of one process."""

    code = "report.ranks-losses"
    severity = NOTE
    template = "of {arm}: within {largest:.1e} of 1 process's over {steps:count step} (tolerance {tolerance:g})"

    arm: str
    largest: float
    steps: int
    tolerance: float


class RanksLossesDiffer(Message):
    code = "report.ranks-losses-differ"
    template = "of {arm} DIFFER from 1 process's by {largest:.1e} over {steps:count step} (tolerance {tolerance:g})"

    arm: str
    largest: float
    steps: int
    tolerance: float


class InstancesOverOwn(Message):
    code = "report.instances-over-own"
    severity = NOTE
    template = (
        "{instances} at once: {ratio:ratio}x the throughput of one {profile} process "
        "(95% CI {low:ratio} to {high:ratio})"
    )

    instances: int
    profile: str
    ratio: float
    low: float
    high: float
