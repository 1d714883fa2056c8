"""Messages of the advice: why a training takes longer than it must."""

from __future__ import annotations

from envkit.messages import Note

# What is seen, however much or little of it there is.


class KernelTime(Note):
    """The kernel's share of the CPU time, with page faults per step if steps were seen, else per second."""

    template = (
        "{share:.0%} of its CPU time is the kernel's[, with {faults_per_step:,.0f} page faults a step]"
        "[, with {faults_per_s:,.0f} page faults a second]"
    )

    share: float
    faults_per_step: float | None = None
    faults_per_s: float | None = None


class NativeMatrixCode(Note):
    """MKL has nothing faster for this processor than what it takes."""

    template = "MKL already uses code made for this processor"


class GenericMatrixCode(Note):
    """The share of a step that is matrix products in generic code."""

    template = "{share:.0%} of a step is matrix products, for which MKL uses code made for any processor"

    share: float


class WaitingThreads(Note):
    """The share of their time in which threads that could run had no CPU."""

    template = "runnable threads waited for a CPU in {share:.0%} of their time"

    share: float


class SmallOperators(Note):
    """The share of a step in operators that take less than ``below_us`` microseconds each, and their calls a second."""

    template = (
        "{share:.0%} of a step is in operators of less than {below_us:.0f} us each, {calls_per_s:,.0f} of them a second"
    )

    share: float
    below_us: float
    calls_per_s: float


# Why it costs time.


class MemoryGivenBack(Note):
    template = "the allocator returns memory to the kernel, which zeroes its pages again for each step"


class FasterMatrixCode(Note):
    template = "MKL has faster code for this processor, but uses it only if it takes the processor for Intel's"


class SmallBlocks(Note):
    template = "each allocates small blocks of memory, and mimalloc may serve these faster than the C library does"


class CpusKept(Note):
    template = "other programs, or threads that spin while they wait, take CPUs from threads that have work"
