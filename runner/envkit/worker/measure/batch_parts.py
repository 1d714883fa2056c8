"""How long a batch of DataLoader's takes to be made: each part of it, wherever it is made.

It comes with its batch, from DataLoader's workers too: what makes batches is replaced before these are forked, as the
workload's own files stay as they are (see ``entry_points``).
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from envkit.worker import png
from envkit.worker.accelerator import HostClock
from envkit.worker.measure.entry_points import INPUT, Listener, Recorder, replaced, reported
from envkit.worker.workloads import loader

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

    Loader = DataLoader[object]
    Iteration = Callable[[Loader], Iterator[object]]

READ, DECODE, TRANSFORM, COLLATE = PARTS = ("read", "decode", "transform", "collate")


@dataclass
class Batches:
    """The batches so far: how many ``workers`` make them, and the seconds of each batch's parts."""

    workers: int = 0
    seconds: list[dict[str, float]] = field(default_factory=list)

    def last(self, steps: int) -> dict[str, object] | None:
        """Return the seconds of the last ``steps`` batches by part; None if the parts of none are known."""
        if not self.seconds:
            return None
        by_part = {part: [round(of_batch.get(part, 0.0), 7) for of_batch in self.seconds[-steps:]] for part in PARTS}
        return {"workers": self.workers, "parts": by_part}


@contextlib.contextmanager
def timed_parts(listener: Listener) -> Iterator[Batches]:
    """Time the parts of DataLoader's batches meanwhile; ``listener`` hears when the training waits for one (INPUT)."""
    from torch.utils.data import DataLoader

    batches = Batches()
    # reading is a part of decoding, and that of what becomes of one file
    recorder = Recorder(HostClock, inner=(READ, DECODE))
    chunks = png._chunks
    replacements = (
        (png, "_chunks", reported(lambda content: iter(list(chunks(content))), READ, recorder)),
        (png, "decode", reported(png.decode, DECODE, recorder)),
        (loader.Pictures, "__getitem__", reported(loader.Pictures.__getitem__, TRANSFORM, recorder)),
        (DataLoader, "__iter__", _iteration(DataLoader.__iter__, batches, recorder, listener)),
    )
    with contextlib.ExitStack() as undone:
        for owner, name, value in replacements:
            undone.enter_context(replaced(owner, name, value))
        yield batches


class _TimedBatch(NamedTuple):
    batch: object
    seconds: dict[str, float]


def _iteration(begin: Iteration, batches: Batches, recorder: Recorder, listener: Listener) -> Iteration:
    """Replace DataLoader's ``__iter__``, which is ``begin``: the same batches, each without its times."""

    def iterate(data_loader: Loader) -> Iterator[object]:
        collate = data_loader.collate_fn
        timed_collate = reported(collate, COLLATE, recorder)
        if _keeps_replacements(data_loader):
            data_loader.collate_fn = lambda items: _TimedBatch(timed_collate(items), recorder.take())
        try:
            iterator = reported(begin, INPUT, listener)(data_loader)  # which starts its workers
        finally:
            data_loader.collate_fn = collate
        current: list[object] = []

        def take_next() -> bool:
            current.clear()  # a batch takes a while to be freed, which is not to fall between two phases
            current.extend(itertools.islice(iterator, 1))
            return bool(current)

        has_next = reported(take_next, INPUT, listener)
        while has_next():
            batch = current[0]
            if isinstance(batch, _TimedBatch):
                current[0] = batch.batch
                batches.workers = data_loader.num_workers
                batches.seconds.append(batch.seconds)
            del batch
            yield current[0]

    return iterate


def _keeps_replacements(data_loader: Loader) -> bool:
    """Return whether its batches are made in a copy of this process as it is now, or in this process itself."""
    context = data_loader.multiprocessing_context or multiprocessing
    return not data_loader.num_workers or context.get_start_method() == "fork"
