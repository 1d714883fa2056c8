"""Messages on where a difference in time comes from, by profiled processes. Times are milliseconds per step."""

from __future__ import annotations

from envkit.messages import Caution, Message, Note

OTHERS_GO_BACK = "as other operators go the other way"

# Rows among the operators: the rest of them, and the time in which no operator ran.
OTHERS, OUTSIDE = "other operators", "outside of operators"


class FewProcesses(Caution):
    template = "nothing can be concluded from {processes:count process|processes} each: use {enough} (--processes)"

    processes: int
    enough: int


class TimesOverlap(Note):
    """The ranges of both profiles' processes."""

    template = (
        "no difference to explain: the processes' times overlap ({reference_low_ms:.1f} to {reference_high_ms:.1f} ms "
        "and {low_ms:.1f} to {high_ms:.1f} ms per step)"
    )

    reference_low_ms: float
    reference_high_ms: float
    low_ms: float
    high_ms: float


class StepTime(Note):
    """``change`` is less or more."""

    template = (
        "{arm} takes {difference_ms:.1f} ms {change} per step than {reference} ({reference_ms:.1f} and {own_ms:.1f} ms)"
    )

    arm: str
    reference: str
    difference_ms: float
    change: str
    reference_ms: float
    own_ms: float


class SameCpuTime(Note):
    """The CPU time of all threads did not change with the time of a step."""

    template = (
        "its threads use about the same CPU time ({reference_ms:.1f} and {own_ms:.1f} ms per step, all "
        "together): they share the work or wait for each other differently"
    )

    reference_ms: float
    own_ms: float


class CpuTimeVaries(Note):
    template = "CPU time differs, but not in all processes: cause unknown"


class ProgramTime(Note):
    """The part of a change of CPU time that is the program's. ``change`` is saves or costs."""

    template = (
        "it {change} {total_ms:.1f} ms of CPU time per step in all threads; {part_ms:.1f} ms of that are the "
        "program's, where threads compute, or wait for each other or for the kernel"
    )

    change: str
    total_ms: float
    part_ms: float


class KernelTime(Note):
    """The same of the kernel, if page faults don't explain it. ``change`` is saves or costs."""

    template = (
        "it {change} {total_ms:.1f} ms of CPU time per step in all threads; {part_ms:.1f} ms of that are the "
        "kernel's, cause unknown: page faults do not change with it ({faults_before:,.0f} to {faults_after:,.0f} per "
        "step)"
    )

    change: str
    total_ms: float
    part_ms: float
    faults_before: float
    faults_after: float


class MemoryTime(KernelTime):
    """The same if page faults explain it. ``moved`` is fall or rise; the rest is the program's if it is notable."""

    template = (
        "it {change} {total_ms:.1f} ms of CPU time per step in all threads; {part_ms:.1f} ms of that are the "
        "kernel's, which gives memory: page faults {moved} from {faults_before:,.0f} to {faults_after:,.0f} per step"
        "[; the other {rest_ms:.1f} ms are the program's]"
    )

    moved: str
    rest_ms: float | None = None


class NoOperatorDiffers(Note):
    template = "under the profiler, no operator's time differs in all processes"


class OperatorDiffers(Note):
    template = "{name} ({difference_ms:+.1f} ms)"

    name: str
    difference_ms: float


class OperatorsDiffer(Note):
    """The operators that differ most, and their share of the difference. ``why`` is why that is more than all of it."""

    template = "under the profiler, {operators:list} differ most: {share:percent} of the difference there[, {why}]"

    operators: tuple[Message, ...]
    share: float
    why: str | None = None
