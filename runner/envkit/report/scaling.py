"""How a training scales over ranks, or over several at once: the lines of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envkit.analysis.scaling import Scaled, ScaledInstances
from envkit.bench.losses import loss_tolerance
from envkit.bench.study import WEAK, Study
from envkit.messages import Message
from envkit.rendering import text
from envkit.report.messages import trainings as messages
from envkit.report.parts import Row, labelled_once
from envkit.worker.workloads.all_reduce import bus_factor

LOSSES = (messages.RanksLosses, messages.RanksLossesDiffer, messages.LossesOfOtherBatch)
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def rows(scaled: Sequence[Scaled], study: Study, units: Mapping[str, str]) -> list[Row]:
    """Return for each arm of several ranks how fast it is, how much is lost to what, and how its losses agree.

    ``units`` are what rates of the arms count, by the arms' names.
    """
    return labelled_once(row for one in scaled for row in _rows(one, study, units.get(one.arm, "images")))


def steps(at_once: bool, weak_ranks: int | None, rate: str | None = None) -> Message | None:
    """Return what a step is if steps of some arms are larger than those of others; None if all have one batch.

    They are larger where several train ``at_once``, or so many ranks in weak scaling.

    ``rate`` is the column of a table that compares them.
    """
    if at_once:
        return messages.StepsAtOnce()
    return messages.StepsOfRanks(weak_ranks, rate) if weak_ranks is not None else None


def instances(scaled: Sequence[ScaledInstances], profiles: Mapping[str, str]) -> list[Row]:
    """Return the throughput of each arm of several at once over that of one process under the same profile.

    ``profiles`` are the names of the arms' profiles.
    """
    over_own = (
        messages.InstancesOverOwn(several.instances, profiles[several.arm], ratio.ratio, ratio.low, ratio.high)
        for several in scaled
        if (ratio := several.over_one_process) is not None
    )
    return labelled_once(Row("At once", message) for message in over_own)


def _rows(scaled: Scaled, study: Study, unit: str) -> list[Row]:
    lines = [
        ("Scaling", _ratios(scaled, study, unit)),
        ("Scaling", _losses(scaled, study)),
        ("Waiting", _communication(scaled)),
    ]
    lines.append(("Transfer", _exchanged(scaled)))
    return [
        Row("Losses" if isinstance(message, LOSSES) else label, message,
            "bad" if isinstance(message, messages.RanksLossesDiffer) else "plain")
        for label, message in lines if message is not None
    ]  # fmt: skip


def _exchanged(scaled: Scaled) -> Message | None:
    """Return the bandwidths of an all-reduce, as nccl-tests define them: GB are of 10^9 bytes."""
    if not scaled.exchanged:
        return None
    each = (
        f"{size(this.size_bytes)} {this.bus_bytes_per_s / 1e9:.3g} GB/s ({this.seconds * 1e3:.3g} ms)"
        for this in scaled.exchanged
    )
    return messages.AllReduce(scaled.ranks, bus_factor(scaled.ranks), tuple(each))


def size(count: int) -> str:
    """``4 KiB``, ``16 MiB``."""
    unit = next((unit for unit in ("GiB", "MiB", "KiB") if count >= UNITS[unit]), "KiB")
    return f"{count / UNITS[unit]:g} {unit}"


def _ratios(scaled: Scaled, study: Study, unit: str) -> Message | None:
    """Return how fast the ranks are; None if no arm of one process is there, or the headline says it."""
    if not study.single_processes or scaled.speedup is None:
        return None
    speedup, lost = (scaled.speedup.ratio, scaled.speedup.low, scaled.speedup.high), scaled.efficiency
    efficiency = messages.Interval(lost.ratio, lost.low, lost.high) if lost else None
    if scaled.kind == WEAK:
        rate, beside = f"{unit}/s", share(study)
        return messages.RanksSpeedup(scaled.arm, scaled.ranks, rate, beside, *speedup, efficiency, scaled.ranks)
    beside = share(study, whole=True)
    return messages.RanksSpeedup(scaled.arm, scaled.ranks, "speed", beside, *speedup, efficiency)


def share(study: Study, whole: bool = False) -> str:
    """Return what all ranks are compared with: one process on the CPUs of one rank, or on all."""
    parts = study.ranks if study.ranks > 1 and not whole else None
    return text(messages.OneProcess(study.reference.profile, parts))


def _communication(scaled: Scaled) -> Message:
    """Return how long a step communicates, as a share: its time is that of steps under the profiler."""
    low, high = (f"{share:.1%}" for share in scaled.communication_range)
    return messages.RanksWait(scaled.arm, scaled.communication_share, f"{low} to {high}" if low != high else None)


def _losses(scaled: Scaled, study: Study) -> Message | None:
    if scaled.kind == WEAK:
        return messages.LossesOfOtherBatch(scaled.ranks)
    if scaled.losses is None:
        return None
    losses, workload = scaled.losses, study.workload_of(study.arm(scaled.arm))
    allowed = loss_tolerance(workload, study.options.precision, other_ranks=True)
    kind = messages.RanksLosses if losses.agree else messages.RanksLossesDiffer
    return kind(scaled.arm, losses.largest_difference, losses.steps, allowed)
