"""The exchange of ranks that train, and nothing else: sums over all ranks, of numbers in several sizes.

A step adds up each of SIZES (times the scale) REPEATS times, as DistributedDataParallel adds up gradients: float32, in
place. How long one takes is the mean over these; one before them, which is not timed, has ranks begin together. The
bandwidths are those of nccl-tests (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md): that of the
algorithm is size over time, and that of the bus what each rank's way out carries at least: 2 (n - 1) / n times as much,
for n ranks. The latter can be compared with what hardware can do, whatever the number of ranks.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from envkit.worker import accelerator, distributed, modes
from envkit.worker.modes import USUAL, Options
from envkit.worker.sample import Exchanged
from envkit.worker.workloads import digests

if TYPE_CHECKING:
    from torch import Tensor

# In bytes, at scale 1: a few numbers, where latency is all, up to the gradients of some million parameters.
SIZES = (2**12, 2**16, 2**20, 2**24)
REPEATS = 5
FLOAT_BYTES = 4


def bus_factor(ranks: int) -> float:
    """How many times as much as its numbers each rank of an all-reduce sends, at least."""
    return 2 * (ranks - 1) / ranks


class Exchange:
    """One exchange, ready to step; its own ``network``, whose weights are the sums."""

    unit = "MB"
    steps_per_epoch = 1

    def __init__(self, options: Options) -> None:
        import torch

        self._torch = torch
        self._device = options.device
        self._bytes = [size * options.scale for size in SIZES]
        self._sums = [torch.zeros(size // FLOAT_BYTES, device=options.device) for size in self._bytes]
        self._seconds: list[list[float]] = [[] for _ in SIZES]
        self.images_per_step = round((REPEATS + 1) * sum(self._bytes) / 1e6)
        self.network = self
        self.digests = {
            "code": digests.of_code((options, SIZES, REPEATS), __file__, distributed.__file__, accelerator.__file__),
            "data": digests.of_arrays(()),
            "initial_weights": self.weights(),
        }

    def step(self) -> float:
        """Add up all sizes; the result as a share of what it must be, which is the same for any number of ranks."""
        for numbers, seconds in zip(self._sums, self._seconds):
            numbers.fill_(distributed.rank() + 1)
            self._add_up(numbers)
            clock = accelerator.clock(self._device)
            clock.mark()
            for _ in range(REPEATS):
                self._add_up(numbers)
            clock.mark()
            begin, end = clock.times()
            seconds.append((end - begin) / REPEATS)
        ranks = distributed.size()
        expected: float = ranks * (ranks + 1) / 2 * float(ranks) ** REPEATS
        return sum(float(numbers[-1]) for numbers in self._sums) / len(self._sums) / expected

    def _add_up(self, numbers: Tensor) -> None:
        """One process has nothing to add."""
        if distributed.size() > 1:
            self._torch.distributed.all_reduce(numbers)

    def exchanged(self, steps: int) -> list[Exchanged]:
        """For each size (bytes) how long this rank took for one (seconds): medians over the last ``steps``."""
        timed = zip(self._bytes, self._seconds)
        return [{"bytes": size, "seconds": median(seconds[-steps:])} for size, seconds in timed]

    def quality(self) -> None:
        """Nothing is learnt."""

    def weights(self) -> str:
        """As that of ``modes.Network``: ranks must have the same sums."""
        return modes.digest_of((str(size), numbers) for size, numbers in zip(self._bytes, self._sums))

    def modes(self) -> dict[str, str | bool]:
        """As that of ``modes.Network``: there is nothing to train in another mode."""
        return {**USUAL.modes, "device": self._sums[0].device.type}


def prepare(data: str, options: Options = USUAL) -> Exchange:
    """Make room for the numbers; there is no ``data``."""
    return Exchange(options)
