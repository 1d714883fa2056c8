"""Messages of full trainings, of ranks that train together, and of several trainings at once."""

from __future__ import annotations

from envkit.messages import Message, Note


class LossesOfOtherBatch(Note):
    template = "not compared: {ranks} ranks train on {ranks} times the batch"

    ranks: int


class TargetReached(Note):
    """Seconds of training and of testing; the speedup over the reference, if it is of another arm."""

    template = "{arm}: {target} after {seconds:.1f} s and {epochs:count epoch}, plus {testing_s:.1f} s of tests"

    arm: str
    target: str
    seconds: float
    epochs: int
    testing_s: float


class RanksSpeedup(Note):
    """How fast several ranks are, over one process; in weak scaling they have so many times the ``batch``."""

    template = (
        "{arm} on {ranks} ranks[, {batch} times the batch]: {ratio:ratio}x the {quantity} of {reference} "
        "(95% CI {low:ratio} to {high:ratio})[; efficiency {efficiency}]"
    )

    arm: str
    ranks: int
    quantity: str
    reference: str
    ratio: float
    low: float
    high: float
    efficiency: Message | None = None
    batch: int | None = None


class Interval(Note):
    template = "{ratio:ratio} ({low:ratio} to {high:ratio})"

    ratio: float
    low: float
    high: float


class RanksWait(Note):
    """By the profiler, under which steps take longer. ``low`` and ``high`` are of the ranks."""

    template = "{arm}'s ranks communicate or wait for {share:percent} of a step, by the profiler[ ({by_rank} by rank)]"

    arm: str
    share: float
    by_rank: str | None = None


class AllReduce(Note):
    template = "bus bandwidth (size over time, times {factor:g} for {ranks} ranks): {sizes}"

    ranks: int
    factor: float
    sizes: tuple[str, ...]


class RanksLosses(Note):
    """Beside those of one process."""

    template = "of {arm}: within {largest:.1e} of 1 process's over {steps:count step} (tolerance {tolerance:g})"

    arm: str
    largest: float
    steps: int
    tolerance: float


class RanksLossesDiffer(Message):
    template = "of {arm} DIFFER from 1 process's by {largest:.1e} over {steps:count step} (tolerance {tolerance:g})"

    arm: str
    largest: float
    steps: int
    tolerance: float


class InstancesOverOwn(Note):
    template = (
        "{instances} at once: {ratio:ratio}x the throughput of one {profile} process "
        "(95% CI {low:ratio} to {high:ratio})"
    )

    instances: int
    profile: str
    ratio: float
    low: float
    high: float


# --- what a step is ---


class StepsAtOnce(Note):
    template = "several trainings at once: a step is one step of each, and speedups are per item"


class StepsOfRanks(Note):
    """Weak scaling; ``rate`` is the column to compare, if the table has one."""

    template = "weak scaling: {ranks} ranks, {ranks} times the batch[ of 1 process; compare {rate}]"

    ranks: int
    rate: str | None = None


class OneProcess(Note):
    """``parts`` is the number of ranks that share the CPUs, if the process has the CPUs of one."""

    template = "1 {profile} process[ on 1/{parts} of the CPUs]"

    profile: str
    parts: int | None = None


# --- full trainings, epoch by epoch ---


class EpochByEpoch(Note):
    template = "{arm}, epoch by epoch[, medians of {samples} trainings]"

    arm: str
    samples: int | None = None


class SomeEpochs(Note):
    template = "every {every} epochs; --details has all"

    every: int


class NeverReached(Message):
    """A training did not reach its target, or not each of several did."""

    template = (
        "{arm} did not reach {target} in {epochs:count epoch}[ in each of {samples} trainings][ (best: {best:.4g})]"
    )

    arm: str
    target: str
    epochs: int
    samples: int | None = None
    best: float | None = None


class Accuracy(Note):
    """The loss and the figures of the reference after a sample's steps."""

    template = "{arm} after {steps:count step}: loss {loss:.3f}, {figures}"

    arm: str
    steps: int
    loss: float
    figures: str
