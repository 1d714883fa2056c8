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
from typing import Any

from envkit.worker import png
from envkit.worker.accelerator import HostClock
from envkit.worker.measure.entry_points import INPUT, Listener, replaced, told
from envkit.worker.measure.recorder import Recorder
from envkit.worker.workloads import loader

READ, DECODE, TRANSFORM, COLLATE = PARTS = ("read", "decode", "transform", "collate")


@dataclass
class Batches:
    """What is known of the batches so far: how many ``workers`` make them, and the seconds of each one's parts."""

    workers: int = 0
    seconds: list[dict[str, float]] = field(default_factory=list)

    def last(self, steps: int) -> dict[str, Any] | None:
        """Of the last so many: by part, the seconds for each batch; None where none came apart."""
        if not self.seconds:
            return None
        parts = {part: [round(one.get(part, 0.0), 7) for one in self.seconds[-steps:]] for part in PARTS}
        return {"workers": self.workers, "parts": parts}


@contextlib.contextmanager
def taken_apart(listener: Listener) -> Iterator[Batches]:
    """Take apart what DataLoader makes meanwhile; ``listener`` is told when the training waits for it (INPUT)."""
    from torch.utils.data import DataLoader

    batches = Batches()
    # reading is a part of decoding, and that of what becomes of one file
    recorder = Recorder(HostClock, inner=(READ, DECODE))
    chunks = png._chunks
    replacements = (
        (png, "_chunks", told(lambda content: iter(list(chunks(content))), READ, recorder)),
        (png, "decode", told(png.decode, DECODE, recorder)),
        (loader.Pictures, "__getitem__", told(loader.Pictures.__getitem__, TRANSFORM, recorder)),
        (DataLoader, "__iter__", _iteration(DataLoader.__iter__, batches, recorder, listener)),
    )
    with contextlib.ExitStack() as undone:
        for owner, name, value in replacements:
            undone.enter_context(replaced(owner, name, value))
        yield batches


def _iteration(
    begin: Callable[[Any], Iterator[Any]], batches: Batches, recorder: Recorder, listener: Listener
) -> Callable[[Any], Iterator[Any]]:
    """In the place of DataLoader's ``__iter__``, which is ``begin``: the same batches, each without its times."""

    def iterate(given: Any) -> Iterator[Any]:
        apart = _keeps_replacements(given)
        collate = given.collate_fn
        together = told(collate, COLLATE, recorder)
        given.collate_fn = (lambda items: (together(items), recorder.take())) if apart else collate
        try:
            made = told(begin, INPUT, listener)(given)  # which starts its workers
        finally:
            given.collate_fn = collate
        held: list[Any] = []

        def take_next() -> bool:
            held.clear()  # a batch takes a while to be freed, which is not to fall between two phases
            held.extend(itertools.islice(made, 1))
            return bool(held)

        is_there = told(take_next, INPUT, listener)
        while is_there():
            if apart:
                held[0], seconds = held[0]
                batches.workers = given.num_workers
                batches.seconds.append(seconds)
            yield held[0]

    return iterate


def _keeps_replacements(given: Any) -> bool:
    """Whether what makes its batches is a copy of this process as it is now, or this process itself."""
    context = given.multiprocessing_context or multiprocessing
    return not given.num_workers or context.get_start_method() == "fork"
