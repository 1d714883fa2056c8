"""How a training scales over ranks: the lines of a report."""

from __future__ import annotations

from dataclasses import replace

from envkit.analysis.losses import loss_tolerance
from envkit.analysis.result import Result
from envkit.analysis.scaling import Scaled
from envkit.bench.study import WEAK, Study
from envkit.messages import Message
from envkit.rendering import text
from envkit.report.messages import trainings as messages
from envkit.report.parts import Row
from envkit.worker.workloads.all_reduce import bus_factor

LOSSES = (messages.RanksLosses, messages.RanksLossesDiffer, messages.LossesOfOtherBatch)
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def rows(result: Result) -> list[Row]:
    """Return for each arm of several ranks how fast it is, how much is lost to what, and how its losses agree."""
    found = [row for one in result.scaling for row in _rows(result, one)]
    labels = ["", *(row.label for row in found)]
    return [row if row.label != before else replace(row, label="") for row, before in zip(found, labels, strict=False)]


def steps(study: Study) -> messages.StepsAtOnce | messages.StepsOfRanks | None:
    """Return what a step is if steps of some arms are larger than those of others; None if all have one batch."""
    if study.at_once:
        return messages.StepsAtOnce()
    return messages.StepsOfRanks(study.ranks * study.nodes) if study.weak else None


def _rows(result: Result, one: Scaled) -> list[Row]:
    found = [("Scaling", _ratios(result, one)), ("Scaling", _losses(result, one)), ("Waiting", _communication(one))]
    found.append(("Transfer", _exchanged(one)))
    order = [label_and for label_and in found if label_and[1] is not None]
    return [
        Row("Losses" if isinstance(one, LOSSES) else label, one,
            "bad" if isinstance(one, messages.RanksLossesDiffer) else "plain")
        for label, one in order if one is not None
    ]  # fmt: skip


def _exchanged(one: Scaled) -> Message | None:
    """Return the bandwidths of an all-reduce, as they are usually defined."""
    if not one.exchanged:
        return None
    each = (f"{size(this.size_bytes)} {_rate(this.bus_bytes_per_s)} ({_time(this.seconds)})" for this in one.exchanged)
    return messages.AllReduce(one.ranks, bus_factor(one.ranks), tuple(each))


def size(count: int) -> str:
    """``4 KiB``, ``16 MiB``."""
    unit = next((unit for unit in ("GiB", "MiB", "KiB") if count >= UNITS[unit]), "KiB")
    return f"{count / UNITS[unit]:g} {unit}"


def _rate(bytes_per_s: float) -> str:
    """GB, of 10^9 bytes, as nccl-tests have them."""
    return f"{bytes_per_s / 1e9:.3g} GB/s"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _ratios(result: Result, one: Scaled) -> Message | None:
    """Return how fast the ranks are; None if no arm of one process is there, or the headline says it."""
    if not result.study.single_processes or one.speedup is None:
        return None
    speedup = (one.speedup.ratio, one.speedup.low, one.speedup.high)
    own = one.efficiency
    efficiency = messages.Interval(own.ratio, own.low, own.high) if own else None
    if one.kind == WEAK:
        beside = share(result.study)
        rate = f"{_unit(result, one)}/s"
        return messages.RanksSpeedup(one.arm, one.ranks, rate, beside, *speedup, efficiency, one.ranks)
    beside = share(result.study, whole=True)
    return messages.RanksSpeedup(one.arm, one.ranks, "speed", beside, *speedup, efficiency)


def share(study: Study, whole: bool = False) -> str:
    """Return what all ranks are compared with: one process on the CPUs of one rank, or on all."""
    parts = study.ranks if study.ranks > 1 and not whole else None
    return text(messages.OneProcess(study.reference.profile, parts))


def _unit(result: Result, one: Scaled) -> str:
    return next((measured.unit for measured in result.measured if measured.arm == one.arm), "images")


def _communication(one: Scaled) -> Message:
    """Return how long a step communicates, as a share: its time is that of steps under the profiler."""
    low, high = (f"{share:.1%}" for share in one.communication_range)
    return messages.RanksWait(one.arm, one.communication_share, f"{low} to {high}" if low != high else None)


def _losses(result: Result, one: Scaled) -> Message | None:
    if one.kind == WEAK:
        return messages.LossesOfOtherBatch(one.ranks)
    if one.losses is None:
        return None
    study, losses = result.study, one.losses
    workload = study.workload_of(study.arm(one.arm))
    allowed = loss_tolerance(workload, study.options.precision, other_ranks=True)
    kind = messages.RanksLosses if losses.agree else messages.RanksLossesDiffer
    return kind(one.arm, losses.largest_difference, losses.steps, allowed)
