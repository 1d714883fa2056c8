"""Time per operator in the profiled processes of one or two profiles, and the sources of a difference.

Documents are those of ``envkit.worker.measure.operators``. A number per step is the median over a profile's processes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from envkit.analysis import operator_messages as messages
from envkit.analysis.operator_messages import OTHERS, OUTSIDE
from envkit.engines.measurement import OperatorDocument, TrainingDocument
from envkit.messages import Message

# How much of a change of CPU time is "most of it"; page faults have to have fallen (or grown) by as large a share.
MOST = 0.5
NEARLY_ALL = 0.75
# Below this share of the difference in time, CPU time has not changed with it.
LITTLE = 0.1
NAMED = 3
# All of so many values are above all of so many others in 2 of 70 cases by chance alone.
ENOUGH = 4
AUTOGRAD = "autograd::engine::evaluate_function: "


@dataclass(frozen=True)
class Figure:
    """A number per step: one for each process, in the order in which they ran."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def apart_from(self, other: Figure) -> bool:
        """Whether all values are above, or all below, all of the other's, and there are enough to say so."""
        enough = min(len(self.values), len(other.values)) >= ENOUGH
        return enough and (self.low > other.high or self.high < other.low)

    def to_json(self) -> dict[str, object]:
        return {"median": self.median, "processes": list(self.values)}


@dataclass(frozen=True)
class Operator:
    """Milliseconds in the operator itself, calls, and bytes that it allocates and keeps: all per step."""

    name: str
    ms: Figure
    calls: float
    allocated_bytes: float


@dataclass(frozen=True)
class Profiled:
    """One profile's processes. Times are milliseconds per step."""

    arm: str
    step_ms: Figure
    profiled_ms: Figure  # under the profiler, as are operators and gpu_idle
    user_ms: Figure  # CPU time of all threads
    system_ms: Figure
    faults: Figure
    operators: dict[str, Operator]  # by name: with what is outside of all of them they add up to whole_ms
    gpu_idle: Figure | None = None  # the share of the time in which it had nothing to do; None without a GPU
    forward_ms: Figure | None = None  # of the forward pass under the profiler, where operators are those of it alone

    @property
    def overhead(self) -> float:
        """Return by which share the profiler makes a step longer."""
        return self.profiled_ms.median / self.step_ms.median - 1

    @property
    def whole_ms(self) -> Figure:
        """Return what the operators are parts of."""
        return self.forward_ms or self.profiled_ms

    def to_json(self) -> dict[str, object]:
        figures = ("step_ms", "profiled_ms", "user_ms", "system_ms", "faults")
        return {
            "arm": self.arm,
            "profiler_overhead": self.overhead,
            **{name: getattr(self, name).to_json() for name in figures},
            "gpu_idle_share": self.gpu_idle.to_json() if self.gpu_idle else None,
            "forward_ms": self.forward_ms.to_json() if self.forward_ms else None,
            "operators": [{**asdict(operator), "ms": operator.ms.to_json()} for operator in self.operators.values()],
        }


def profiled(arm: str, documents: Sequence[TrainingDocument]) -> Profiled:
    """The processes of one profile, each per step of its own."""

    def each(value: Callable[[TrainingDocument], float]) -> Figure:
        return Figure(tuple(value(document) for document in documents))

    def usage(name: str, scale: float) -> Figure:
        return each(lambda one: scale * one["usage"][name] / len(one["step_s"]))

    by_name = [{one["name"]: one for one in document["operators"]} for document in documents]
    names = dict.fromkeys(name for found in by_name for name in found)

    def per_step(name: str, value: Callable[[OperatorDocument], float], scale: float = 1) -> Figure:
        steps = [len(document["profiled_step_s"]) for document in documents]
        pairs = zip(by_name, steps, strict=True)
        return Figure(tuple(scale * (value(known[name]) / number) if name in known else 0.0 for known, number in pairs))

    operators = {
        name: Operator(
            name,
            per_step(name, lambda operator: operator["self_s"], 1000),
            per_step(name, lambda operator: operator["calls"]).median,
            per_step(name, lambda operator: operator["allocated_bytes"]).median,
        )
        for name in names
    }
    steps = each(lambda one: 1000 * statistics.fmean(one["profiled_step_s"]))
    forward = None
    if "forward_s" in documents[0]:
        forward = each(lambda one: 1000 * one["forward_s"] / len(one["profiled_step_s"]))
    inside = _sum([one.ms for one in operators.values()], len(documents))
    whole = (forward or steps).values
    rest = Figure(tuple(max(0.0, of_all - part) for of_all, part in zip(whole, inside.values, strict=True)))
    return Profiled(
        arm=arm,
        step_ms=each(lambda one: 1000 * statistics.fmean(one["step_s"])),
        profiled_ms=steps,
        user_ms=usage("user_s", 1000),
        system_ms=usage("system_s", 1000),
        faults=usage("minor_faults", 1),
        operators={**operators, OUTSIDE: Operator(OUTSIDE, rest, 0, 0)},
        gpu_idle=_gpu_idle(documents),
        forward_ms=forward,
    )


def _gpu_idle(documents: Sequence[TrainingDocument]) -> Figure | None:
    shares = [document.get("gpu_idle_share") for document in documents]
    told = tuple(share for share in shares if share is not None)
    return Figure(told) if told else None


def _sum(figures: Sequence[Figure], processes: int) -> Figure:
    return Figure(tuple(sum(figure.values[nth] for figure in figures) for nth in range(processes)))


@dataclass(frozen=True)
class Line:
    """One operator of both profiles, or of the only one; None where a profile does not use it."""

    name: str
    reference: Operator | None
    other: Operator | None

    @property
    def longest_ms(self) -> float:
        return max(one.ms.median for one in (self.reference, self.other) if one is not None)

    @property
    def ratio(self) -> float | None:
        """The reference's time over the other's: above 1 the other is faster. None where one of them takes none."""
        if self.reference is None or self.other is None or not min(self.reference.ms.median, self.other.ms.median):
            return None
        return self.reference.ms.median / self.other.ms.median

    @property
    def difference_ms(self) -> float:
        """How much more the other takes than the reference, in milliseconds per step."""
        reference, other = (one.ms.median if one else 0.0 for one in (self.reference, self.other))
        return other - reference


def lines(reference: Profiled, other: Profiled | None, top: int) -> list[Line]:
    """The ``top`` operators that take longest under either, and all others in one line at the end."""
    sides = [reference] if other is None else [reference, other]
    names = dict.fromkeys(name for side in sides for name in side.operators)
    every = [Line(name, reference.operators.get(name), other.operators.get(name) if other else None) for name in names]
    every.sort(key=lambda line: -line.longest_ms)
    shown, rest = every[:top], every[top:]
    if rest:
        merged = [_others(side, [line.name for line in rest]) for side in sides]
        shown.append(Line(OTHERS, merged[0], merged[1] if other else None))
    return shown


def _others(side: Profiled, names: Sequence[str]) -> Operator:
    found = [side.operators[name] for name in names if name in side.operators]
    summed = _sum([one.ms for one in found], len(side.step_ms.values))
    return Operator(OTHERS, summed, sum(one.calls for one in found), sum(one.allocated_bytes for one in found))


def short_name(name: str) -> str:
    """An operator's name without the namespaces in which nearly all of them are."""
    if name.startswith(AUTOGRAD):
        return f"{name.removeprefix(AUTOGRAD)} (autograd)"
    return name.removeprefix("aten::")


def reasons(reference: Profiled, other: Profiled) -> list[Message]:
    """Return where the difference in time comes from: no more than the numbers support.

    First whether there is a difference that all processes show; then whether CPU time changed with it, and whether in
    the kernel or in the program; then the operators whose times are apart in all processes.
    """
    step, before = other.step_ms, reference.step_ms
    if not step.apart_from(before):
        processes = min(len(step.values), len(before.values))
        if processes < ENOUGH:
            return [messages.FewProcesses(processes, ENOUGH)]
        return [messages.TimesOverlap(before.low, before.high, step.low, step.high)]
    change = step.median - before.median
    faster = change < 0
    how = "less" if faster else "more"
    said = messages.StepTime(other.arm, reference.arm, abs(change), how, before.median, step.median)
    return [said, _of_cpu_time(reference, other, faster), _of_operators(reference, other, faster)]


def _of_cpu_time(reference: Profiled, other: Profiled, faster: bool) -> Message:
    sign = -1 if faster else 1
    system = sign * (other.system_ms.median - reference.system_ms.median)
    user = sign * (other.user_ms.median - reference.user_ms.median)
    total = system + user
    if total < LITTLE * abs(other.step_ms.median - reference.step_ms.median):
        return messages.SameCpuTime(*(one.user_ms.median + one.system_ms.median for one in (reference, other)))
    kernel = system >= MOST * total
    apart = other.system_ms.apart_from(reference.system_ms) if kernel else other.user_ms.apart_from(reference.user_ms)
    if not apart:
        return messages.CpuTimeVaries()
    change, part = "saves" if faster else "costs", min(system if kernel else user, total)
    if not kernel:
        return messages.ProgramTime(change, total, part)
    faults, before = other.faults, reference.faults
    changed = abs(faults.median - before.median) >= MOST * max(faults.median, before.median)
    if changed and (faults.median < before.median) == faster and faults.apart_from(before):
        rest = None if part >= NEARLY_ALL * total else total - part
        moved = "fall" if faster else "rise"
        return messages.MemoryTime(change, total, part, before.median, faults.median, moved, rest)
    return messages.KernelTime(change, total, part, before.median, faults.median)


def _of_operators(reference: Profiled, other: Profiled, faster: bool) -> Message:
    sign = -1 if faster else 1
    every = lines(reference, other, top=10**6)
    apart = [line for line in every if line.reference and line.other and line.other.ms.apart_from(line.reference.ms)]
    named = sorted(apart, key=lambda line: -sign * line.difference_ms)[:NAMED]
    named = [line for line in named if sign * line.difference_ms > 0]
    whole = sign * (other.profiled_ms.median - reference.profiled_ms.median)
    if not named or whole <= 0:
        return messages.NoOperatorDiffers()
    share = sum(sign * line.difference_ms for line in named) / whole
    differ = tuple(messages.OperatorDiffers(short_name(line.name), line.difference_ms) for line in named)
    return messages.OperatorsDiffer(differ, share, messages.OTHERS_GO_BACK if share > 1 else None)
