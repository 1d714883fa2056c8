"""Interference: which blocks were disturbed from outside, and by what (``envkit.checks.interference`` has the rule).

A virtual machine's neighbours on the same cores show in no counter, but in the times of the reference kernel, which no
profile touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from envkit.bench.events import ReferenceKernel, Sample
from envkit.checks.interference import disturbances, interference_in
from envkit.common.messages import About
from envkit.messages import Message

# The reference kernel's times are called uneven from here on, and with at least so many. On a shared host, of whose
# neighbours nothing showed in any counter, it took 1.29 to 1.58 times as long in its slowest of 4 to 17 blocks as in
# its fastest.
UNEVEN, FEWEST_TIMES = 1.25, 4


def interference_by_block(samples: Sequence[Sample]) -> dict[int, list[Message]]:
    """Return by block which arms were disturbed, and why."""
    by_block: dict[int, list[Message]] = {}
    for sample in samples:
        if reasons := interference_in(sample.usage, sample.seconds):
            by_block.setdefault(sample.block, []).extend(About(sample.arm, reason) for reason in reasons)
    return by_block


def disturbed_arms(samples: Sequence[Sample]) -> dict[int, set[str]]:
    """Return the names of the arms whose sample was disturbed, by block."""
    by_block: dict[int, set[str]] = {}
    for sample in samples:
        if disturbances(sample.usage, sample.seconds):
            by_block.setdefault(sample.block, set()).add(sample.arm)
    return by_block


def reference_kernel_range(
    readings: Sequence[ReferenceKernel], interference: Mapping[int, Sequence[Message]]
) -> tuple[float, float] | None:
    """The reference kernel's shortest and longest time in seconds, where others slow this machine and no counter tells.

    It is the same work in each block (None where it was not, by its digest), and each time the median of its passes.
    Only blocks without interference are looked at, and never how long training took. Ten blocks lose the longest and
    the shortest, twenty lose two each, and so on: nothing counts what disturbs the reference kernel alone.
    """
    undisturbed = [reading for reading in readings if reading.block not in interference]
    times = sorted(reading.seconds for reading in undisturbed)
    if len(times) < FEWEST_TIMES or len({reading.digest for reading in undisturbed}) > 1:
        return None
    left_out = len(times) // 10
    least, most = times[left_out], times[-1 - left_out]
    return (least, most) if most >= UNEVEN * least else None


def disturbed_blocks(samples: Sequence[Sample]) -> dict[int, set[str]]:
    """Return the blocks in which one of these samples was disturbed, with the kinds of interference.

    With many arms nearly every block has a disturbed one, so a comparison gives the samples of its two arms.
    """
    by_block: dict[int, set[str]] = {}
    for sample in samples:
        if kinds := disturbances(sample.usage, sample.seconds):
            by_block.setdefault(sample.block, set()).update(kinds)
    return by_block


def commonest(disturbed: Iterable[Iterable[str]]) -> str:
    """Return the kind of interference that most of these blocks, or samples, have. At least one must be there."""
    return Counter(kind for kinds in disturbed for kind in {*kinds}).most_common(1)[0][0]
