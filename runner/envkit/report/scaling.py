"""How a training scales over ranks: the lines of a report."""

from __future__ import annotations

from dataclasses import replace

from envkit.analysis.losses import loss_tolerance
from envkit.analysis.scaling import Scaled
from envkit.analysis.summary import Summary
from envkit.bench.plan import WEAK, Plan
from envkit.messages import Message
from envkit.rendering import text
from envkit.report.messages import trainings as messages
from envkit.report.parts import Row
from envkit.worker.workloads.all_reduce import bus_factor

LOSSES = (messages.RanksLosses, messages.RanksLossesDiffer, messages.LossesOfOtherBatch)
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def rows(summary: Summary) -> list[Row]:
    """Return for each arm of several ranks how fast it is, how much is lost to what, and how its losses agree."""
    found = [row for one in summary.scaling for row in _rows(summary, one)]
    labels = ["", *(row.label for row in found)]
    return [row if row.label != before else replace(row, label="") for row, before in zip(found, labels, strict=False)]


def steps(plan: Plan) -> messages.StepsAtOnce | messages.StepsOfRanks | None:
    """Return what a step is if steps of some arms are larger than those of others; None if all have one batch."""
    if plan.at_once:
        return messages.StepsAtOnce()
    return messages.StepsOfRanks(plan.ranks * plan.nodes) if plan.weak else None


def _rows(summary: Summary, one: Scaled) -> list[Row]:
    found = [("Scaling", _ratios(summary, one)), ("Scaling", _losses(summary, one)), ("Waiting", _communication(one))]
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


def _ratios(summary: Summary, one: Scaled) -> Message | None:
    """Return how fast the ranks are; None if no arm of one process is there, or the headline says it."""
    if not summary.plan.single_processes or one.speedup is None:
        return None
    speedup = (one.speedup.ratio, one.speedup.low, one.speedup.high)
    own = one.efficiency
    efficiency = messages.Interval(own.ratio, own.low, own.high) if own else None
    if one.kind == WEAK:
        beside = share(summary.plan)
        rate = f"{_unit(summary, one)}/s"
        return messages.RanksSpeedup(one.arm, one.ranks, rate, beside, *speedup, efficiency, one.ranks)
    beside = share(summary.plan, whole=True)
    return messages.RanksSpeedup(one.arm, one.ranks, "speed", beside, *speedup, efficiency)


def share(plan: Plan, whole: bool = False) -> str:
    """Return what all ranks are compared with: one process on the CPUs of one rank, or on all."""
    parts = plan.ranks if plan.ranks > 1 and not whole else None
    return text(messages.OneProcess(plan.reference.profile, parts))


def _unit(summary: Summary, one: Scaled) -> str:
    return next((measured.unit for measured in summary.measured if measured.arm == one.arm), "images")


def _communication(one: Scaled) -> Message:
    """Return how long a step communicates, as a share: its time is that of steps under the profiler."""
    low, high = (f"{share:.1%}" for share in one.communication_range)
    return messages.RanksWait(one.arm, one.communication_share, f"{low} to {high}" if low != high else None)


def _losses(summary: Summary, one: Scaled) -> Message | None:
    if one.kind == WEAK:
        return messages.LossesOfOtherBatch(one.ranks)
    if one.losses is None:
        return None
    plan, losses = summary.plan, one.losses
    allowed = loss_tolerance(plan, plan.arm(one.arm), other_ranks=True)
    kind = messages.RanksLosses if losses.agree else messages.RanksLossesDiffer
    return kind(one.arm, losses.largest_difference, losses.steps, allowed)
