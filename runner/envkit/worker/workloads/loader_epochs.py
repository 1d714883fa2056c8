"""The loader's training in epochs that end, as those of one's own do: what DataLoader takes to begin the next one.

Its workers are started by fork, spawn or forkserver (the start methods of Python's ``multiprocessing``), and end with
each epoch or stay (``persistent_workers``). Batches are those of ``loader``, one after the other, so that none of this
changes what is learnt.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import select
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from envkit.worker.modes import USUAL, Options
from envkit.worker.workloads import digests, loader

if TYPE_CHECKING:
    from torch import Tensor

FORK, SPAWN, FORKSERVER = STARTS = ("fork", "spawn", "forkserver")
# How many epochs a sample has, of a workload that is named for them.
EPOCHS = 4
# Steps of an epoch, at least: there is one between its first and the next epoch's.
LEAST_STEPS = 2
NAME = re.compile(rf"(loader-.+)-({'|'.join(STARTS)})(-persistent)?")


@dataclass(frozen=True)
class Settings:
    """The arguments of DataLoader, how its workers are started, and whether they stay when an epoch ends."""

    base: loader.Settings  # as of a training whose epoch has no end
    start: str
    persistent: bool

    @property
    def workload(self) -> str:
        """The name of the workload with just these settings, as ``loader-w2-b32-p2-spawn-persistent``."""
        return f"{self.base.workload}-{self.start}{'-persistent' if self.persistent else ''}"

    @property
    def epoch_steps(self) -> int:
        return loader.PICTURES // self.base.batch


def settings_of(workload: str) -> Settings | None:
    """The settings in a workload's name; None for a name that has none, or can't be: no worker, or too few batches."""
    match = NAME.fullmatch(workload)
    of_loader = loader.settings_of(match[1]) if match else None
    if match is None or of_loader is None or not of_loader.workers:
        return None
    settings = Settings(of_loader, match[2], match[3] is not None)
    return settings if settings.epoch_steps >= LEAST_STEPS else None


class Epochs:
    """The batches of one epoch after the other, each time it is asked for them."""

    def __init__(self, size: int, steps: int) -> None:
        self._batches, self._steps = iter(loader.Batches(size)), steps

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        return itertools.islice(self._batches, self._steps)


class Training(loader.Training):
    """The loader's training; its DataLoader is asked for a new iterator whenever an epoch has ended."""

    def __init__(self, options: Options, settings: Settings) -> None:
        from torch.utils.data import DataLoader

        super().__init__(options, settings.base)
        self.steps_per_epoch = settings.epoch_steps
        self._loader = DataLoader(
            self._loader.dataset, batch_sampler=Epochs(self.images_per_step, self.steps_per_epoch),
            pin_memory=settings.base.pin, num_workers=settings.base.workers,
            prefetch_factor=settings.base.prefetch, multiprocessing_context=settings.start,
            persistent_workers=settings.persistent,
            worker_init_fn=partial(_end_with, os.getpid()) if settings.start == FORKSERVER else None,
        )  # fmt: skip
        self._workers: list[frozenset[int]] = []
        self._every = self._batches = self._all_batches()
        self.digests["code"] = digests.of_code((settings, self.digests["code"]), __file__)

    def _all_batches(self) -> Generator[tuple[Tensor, Tensor], None, None]:
        while True:
            for at, batch in enumerate(self._loader):
                if at == 0:
                    children = multiprocessing.active_children()
                    self._workers.append(frozenset(child.pid for child in children if child.pid is not None))
                yield batch

    def worker_report(self) -> dict[str, object]:
        """Describe DataLoader's workers, and end them; a value is None if too few epochs began to tell.

        Their start method is the kernel's word, and that they stayed is told by their process numbers.
        """
        last = self._workers[-1] if self._workers else frozenset()
        methods = sorted({method for pid in last if (method := started_by(pid))})
        report: dict[str, object] = {
            "start": " and ".join(methods) or None,
            "persistent": len(set(self._workers)) == 1 if len(self._workers) > 1 else None,
            "epochs": len(self._workers),
            "steps_per_epoch": self.steps_per_epoch,
        }
        # by themselves they would see within 5 s that this process has ended; and would leave semaphores behind
        self._every.close()
        self._batches = None
        del self._loader
        return report


def _end_with(training: int, worker: int) -> None:
    """Have this process, one of DataLoader's workers, end when the process ``training`` does, even by SIGKILL.

    DataLoader's own watch is on the parent: a server that forks workers, and lives as long as one of them.
    """
    try:
        ended = os.pidfd_open(training)
    except ProcessLookupError:
        os._exit(1)
    except (OSError, AttributeError):  # a kernel before 5.3, a sandbox, or a Python that was built with older headers
        return
    Thread(target=_wait_and_end, args=(ended,), daemon=True).start()


def _wait_and_end(ended: int) -> None:
    select.select([ended], [], [])
    os._exit(1)


def started_by(pid: int, root: Path = Path("/")) -> str | None:
    """The start method of a process of multiprocessing's, by its command line (proc_pid_cmdline(5)); None if it ended.

    A forked one has that of its parent, and those of the other two name the module by which they began.
    """
    try:
        line = (root / f"proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    if not line:  # it has ended, and nobody has asked how
        return None
    modules = {FORKSERVER: b"multiprocessing.forkserver", SPAWN: b"multiprocessing.spawn"}
    return next((method for method, module in modules.items() if module in line), FORK)


def prepare(data: str, options: Options = USUAL, *, settings: Settings) -> Training:
    """As ``loader.prepare``."""
    return Training(options, settings)
