"""What a report says of how a training scales over ranks."""

from __future__ import annotations

from envkit.analysis.losses import loss_tolerance
from envkit.analysis.scaling import Estimate, Scaled
from envkit.analysis.summary import Summary
from envkit.bench.plan import WEAK, Plan
from envkit.report.parts import Row
from envkit.report.wording import CONFIDENCE
from envkit.stats.interval import Speedup
from envkit.worker.workloads.all_reduce import bus_factor

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def rows(summary: Summary) -> list[Row]:
    """For each arm of several ranks: how fast, how much of that is lost and to what, and whether it learns the same."""
    return [row for one in summary.scaling for row in _rows(summary, one)]


def title(plan: Plan) -> str:
    return "Weak scaling over ranks" if plan.weak else "Scaling over ranks"


def steps(plan: Plan) -> str:
    """What a step is where those of some arms are larger than others', for a line; empty where all have one batch."""
    if plan.at_once:
        return "several at once: a step is one of each, and a speedup is per item"
    ranks = plan.ranks * plan.nodes
    return f"{WEAK}: {ranks} ranks, {ranks} times the batch" if plan.weak else ""


def _rows(summary: Summary, one: Scaled) -> list[Row]:
    found = [Row("scaling", f"{one.arm} on {one.ranks} ranks{_ratios(summary, one)}")]
    found.append(Row("", _communication(one)))
    found += _exchanged(one)
    if losses := _losses(summary, one):
        found.append(losses)
    found.append(Row("", observed(summary, one.arm, "rank")))
    return found


def observed(summary: Summary, arm: str, each: str) -> str:
    """That an arm was in effect in ``each`` of its processes."""
    checks = "What it expects was observed" if summary.environments[arm].expect else "Its variables were observed"
    if any(measured.unverified for measured in summary.measured if measured.arm == arm):
        checks = "What it expects was, as far as it could be verified, observed"
    return f"{checks} in each {each} of every sample, each on CPUs of its own."


def _exchanged(one: Scaled) -> list[Row]:
    """The bandwidths of an all-reduce, as they are usually defined."""
    if not one.exchanged:
        return []
    each = (f"{size(this.size_bytes)} {_rate(this.bus_bytes_per_s)} ({_time(this.seconds)})" for this in one.exchanged)
    factor = bus_factor(one.ranks)
    what = f"All-reduce, bus bandwidth (size over time, times {factor:g} for {one.ranks} ranks) and time of one"
    return [Row("", f"{what}: {', '.join(each)}")]


def size(count: int) -> str:
    """``4 KiB``, ``16 MiB``."""
    unit = next((unit for unit in ("GiB", "MiB", "KiB") if count >= UNITS[unit]), "KiB")
    return f"{count / UNITS[unit]:g} {unit}"


def _rate(bytes_per_s: float) -> str:
    """GB, of 10^9 bytes, as nccl-tests have them."""
    return f"{bytes_per_s / 1e9:.3g} GB/s"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _ratios(summary: Summary, one: Scaled) -> str:
    """Nothing where no arm of one process is there to hold the ranks against."""
    if not summary.plan.single_processes:
        return ""
    weak = one.kind == WEAK
    batch = f", {WEAK} ({one.ranks} times the batch)" if weak else ""
    if one.speedup is None:
        return f"{batch}: not worked out, from too few blocks or before the run has ended"
    efficiency = f", efficiency {shown(one.efficiency)}" if one.efficiency else ""
    of = summary.plan.reference.profile
    if not weak:
        return f": {shown(one.speedup)} times as fast as 1 process of {of} ({CONFIDENCE} interval){efficiency}"
    unit = _unit(summary, one)
    meaning = f": a rank's {unit}/s over those of that process" if efficiency else ""
    beside = f"{share(summary.plan)} ({CONFIDENCE} interval)"
    return f"{batch}: {shown(one.speedup)} times the {unit}/s of {beside}{efficiency}{meaning}"


def share(plan: Plan) -> str:
    """What all ranks are held against in weak scaling."""
    where = f" on 1/{plan.ranks} of the CPUs" if plan.ranks > 1 else ""
    return f"1 process of {plan.reference.profile}{where}"


def _unit(summary: Summary, one: Scaled) -> str:
    return next((measured.unit for measured in summary.measured if measured.arm == one.arm), "images")


def _communication(one: Scaled) -> str:
    """As a share: its time is that of steps under the profiler, which the report shows nowhere else."""
    low, high = (f"{share:.1%}" for share in one.communication_range)
    by_rank = f" ({low} to {high} by rank)" if low != high else ""
    return (
        f"A rank communicates, or waits for others, during {one.communication_share:.1%} of a step{by_rank}, by the "
        "profiler, under which steps take longer; it may compute meanwhile."
    )


def _losses(summary: Summary, one: Scaled) -> Row | None:
    if one.kind == WEAK:
        why = f"{one.ranks} times the batch is another training"
        return Row("", f"Losses can't be compared with those of 1 process: {why}.")
    if one.losses is None:
        return None
    plan, losses = summary.plan, one.losses
    differ = f"by {losses.largest_difference:.1e} at most over {losses.steps} steps"
    allowed = f"{loss_tolerance(plan, plan.arm(one.arm), other_ranks=True):g}"
    if losses.agree:
        return Row("", f"Losses differ from those of 1 process {differ}; {allowed} is the tolerance.")
    return Row("", f"LOSSES DIFFER from those of 1 process {differ}: the tolerance is {allowed}", "bad")


def shown(found: Estimate | Speedup) -> str:
    return f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})"
