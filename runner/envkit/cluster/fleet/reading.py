"""From a folder with a record per node to nodes as plain data, several records at a time.

A record is read, cut down to a few numbers and forgotten before the next one is opened, so that the memory it takes
does not grow with what was recorded.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from envkit.bench.record import FILE_NAME, is_submission
from envkit.cluster.fleet.extract import name_of, read_node
from envkit.cluster.fleet.messages import GIVE_NODES, NoFolder, NoRecord, NoRecords, NoUsableNode, ReaderKilled
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.common import files
from envkit.common.errors import InputError
from envkit.common.messages import About, Unreadable

# Below this many records, starting processes takes longer than reading.
RECORDS_PER_PROCESS = 200
# A file system that serves many nodes is slower when more than a few ask at once.
MOST_PROCESSES = 8
CHUNK = 32
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def read(place: Path, profile: str | None, requested: Sequence[str] = ()) -> tuple[list[Node], list[LeftOut]]:
    """Return the nodes whose records are in the folders in ``place``, and those that can't be used, by name.

    ``profile`` is the one to look at if nodes measured several. Nodes that were ``requested`` and have no folder can't
    be used either. Raise InputError if no node can be used.
    """
    folders, missing = _folders(place)
    left_out = [LeftOut(name_of(folder), NoRecord(FILE_NAME)) for folder in missing]
    there = {name_of(folder) for folder in (*folders, *missing)}
    left_out += [LeftOut(name, NoFolder()) for name in requested if name not in there]
    entries = list(_all(folders, profile))
    nodes = [entry for entry in entries if isinstance(entry, Node)]
    left_out += [entry for entry in entries if isinstance(entry, LeftOut)]
    left_out.sort(key=lambda node: node.name)
    if not folders:
        raise InputError(NoRecords(str(place), FILE_NAME))
    if not nodes:
        first = About(left_out[0].name, left_out[0].reason)
        raise InputError(NoUsableNode(str(place), len(left_out), first))
    return nodes, left_out


def _folders(place: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders with a record, and those without, by name; or ``place`` if it has the record of a run."""
    try:
        if (place / FILE_NAME).exists() and not is_submission(place):
            return [place.resolve()], []  # for its name, even of "."
        inner = sorted(
            Path(entry.path) for entry in os.scandir(place) if entry.is_dir() and not entry.name.startswith(".")
        )
    except OSError as error:
        raise InputError(Unreadable(str(place), files.reason(error), GIVE_NODES)) from None
    there = [(folder / FILE_NAME).exists() for folder in inner]
    with_record = [folder for folder, has_record in zip(inner, there, strict=True) if has_record]
    return with_record, [folder for folder, has_record in zip(inner, there, strict=True) if not has_record]


def _all(folders: Sequence[Path], profile: str | None) -> Iterator[Node | LeftOut]:
    """Every node in order, read by as many processes as are worth it."""
    processes = min(len(os.sched_getaffinity(0)), MOST_PROCESSES, len(folders) // RECORDS_PER_PROCESS)
    if processes < 2:
        yield from (read_node(folder, profile) for folder in folders)
        return
    forked = multiprocessing.get_context("fork")  # so that they are this process's own children
    pool = ProcessPoolExecutor(processes, forked, initializer=_follow_the_parent, initargs=(os.getpid(),))
    try:
        yield from pool.map(partial(read_node, profile=profile), folders, chunksize=CHUNK)
    except BrokenProcessPool:
        raise InputError(ReaderKilled()) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _follow_the_parent(parent: int) -> None:
    """Leave interrupts to the process that reads for a report, and end when it does, however that is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before the kernel could be asked to tell
