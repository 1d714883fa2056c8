"""How a training scales over ranks, and how the throughput of several trainings at once compares with one process."""

from __future__ import annotations

import statistics as basic
from collections.abc import Sequence
from dataclasses import dataclass

from envkit.analysis.intervals import Estimate, Intervals
from envkit.bench.arms import Arm, Role
from envkit.bench.events import Sample
from envkit.bench.losses import Losses, compared, loss_tolerance
from envkit.bench.study import STRONG
from envkit.stats.interval import Speedup
from envkit.worker.workloads.all_reduce import bus_factor


@dataclass(frozen=True)
class Exchanged:
    """One size of an all-reduce, and how long it takes."""

    size_bytes: int
    seconds: float  # a median over samples
    bytes_per_s: float  # of the algorithm
    bus_bytes_per_s: float  # what each rank sends at least in that time: see envkit.worker.workloads.all_reduce


@dataclass(frozen=True)
class Scaled:
    """One arm that ``ranks`` processes train together; ratios are None where there are too few blocks.

    For how long a step communicates, or waits for others, is by the profiler, under which steps take longer: medians
    over samples.
    """

    arm: str
    ranks: int
    # The time of one process of the baseline over its time, both for one item. That process has all CPUs; in weak
    # scaling it has those of one rank, and a batch as large as one rank's part.
    speedup: Estimate | None
    # Of the baseline's own ranks: the time of one process on the CPUs of one rank, over `ranks` times its time, both
    # for one item. It is 1 where so many ranks do so many times as much.
    efficiency: Estimate | None
    communication_s: float  # a mean over ranks
    communication_share: float  # that share of a step
    communication_range: tuple[float, float]  # the lowest and the highest share of a rank
    losses: Losses | None  # beside those of one process; None in weak scaling, where its batches are others
    exchanged: tuple[Exchanged, ...] = ()  # of a workload that does nothing else
    kind: str = STRONG  # or WEAK (envkit.bench.study)
    # The arms of one process that speedup and efficiency are held against; None where there is none.
    speedup_over: str | None = None
    efficiency_over: str | None = None


def scaled(intervals: Intervals, arm: Arm) -> Scaled:
    """Return what the samples of ``arm``, of which there are some, say; ratios only of a run that has ended."""
    run, study = intervals.run, intervals.run.study
    ranks = study.ranks_of(arm)
    speedup, efficiency = study.contrast(arm, Role.SPEEDUP), study.contrast(arm, Role.EFFICIENCY)
    samples = run.samples(arm)
    single = run.samples(study.arm(speedup.reference)) if speedup else []
    waits = [sample.communication for sample in samples if sample.communication]
    by_rank = [_shares(sample) for sample in samples]
    tolerance = loss_tolerance(study.workload_of(arm), study.options.precision, other_ranks=True)
    return Scaled(
        arm=arm.name,
        ranks=ranks,
        speedup=intervals.estimate(arm, Role.SPEEDUP),
        efficiency=intervals.estimate(arm, Role.EFFICIENCY),
        communication_s=basic.median(wait.seconds for wait in waits),
        communication_share=basic.median(wait.share for wait in waits),
        communication_range=(basic.median(map(min, by_rank)), basic.median(map(max, by_rank))),
        losses=compared(samples, single, tolerance, study.until is not None) if single and not study.weak else None,
        exchanged=exchanged(samples, ranks),
        kind=study.scaling,
        speedup_over=speedup.reference if speedup else None,
        efficiency_over=efficiency.reference if efficiency else None,
    )


def _shares(sample: Sample) -> list[float]:
    """Return the share of a step in which each rank communicates."""
    return [rank.communication.share for rank in sample.ranks or () if rank.communication]


def exchanged(samples: Sequence[Sample], ranks: int) -> tuple[Exchanged, ...]:
    """Each size that was added up over ``ranks`` in the samples ``own``; none of other workloads."""
    exchanges = [sample.exchange for sample in samples if sample.exchange]
    sizes = []
    for of_size in zip(*exchanges, strict=True):
        size, seconds = of_size[0].bytes, basic.median(one.seconds for one in of_size)
        sizes.append(Exchanged(size, seconds, size / seconds, size / seconds * bus_factor(ranks)))
    return tuple(sizes)


@dataclass(frozen=True)
class ScaledInstances:
    """One arm that so many ``instances`` train at once; None is what too few blocks, or no such arm, leave unknown."""

    arm: str
    instances: int
    over_reference: Speedup | None  # the items per second of all together, over those of one process of the baseline
    over_one_process: Speedup | None  # the same, over those of one process under its profile, where that is another

    def to_json(self) -> dict[str, object]:
        return {
            "arm": self.arm,
            "instances": self.instances,
            "over_reference": self.over_reference and self.over_reference.to_json(),
            "over_one_process": self.over_one_process and self.over_one_process.to_json(),
        }


def scaled_instances(intervals: Intervals, arm: Arm) -> ScaledInstances:
    """Return what the samples of ``arm`` say; ratios only of a run that has ended."""
    over_reference, over_one_process = (intervals.of(arm, role) for role in (Role.EFFECT, Role.INSTANCES))
    return ScaledInstances(arm.name, arm.instances or 1, over_reference, over_one_process)
