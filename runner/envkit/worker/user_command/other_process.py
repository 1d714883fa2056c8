"""Read from outside the variables that another process was started with, and which preloads it has mapped."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypedDict

from envkit.worker.initial_environment import Block, block_of
from envkit.worker.libraries import LIBRARIES, named_as
from envkit.worker.performance_variables import is_performance_variable, preloaded

NOT_MAPPED = "not mapped"


class Variables(TypedDict):
    """The ``variables`` of evidence: values by name, and by entry of LD_PRELOAD whether it is mapped."""

    sensitive: dict[str, str]
    preloaded: dict[str, str]


class Look(NamedTuple):
    """One look at a process. ``allocator`` is None where it has no C library mapped."""

    block: Block
    variables: Variables
    allocator: str | None


def look(pid: int, earlier: Look | None) -> Look | None:
    """Look at the process; return the ``earlier`` look where it has just ended.

    A preload that was mapped once counts as mapped.
    """
    try:
        block = block_of(pid, earlier.block if earlier else None)
        maps = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")  # file names are any bytes
    except OSError:
        return earlier
    if block is None or not maps:  # of a process that has ended
        return earlier
    started = block.variables()
    mappings = (line.split(maxsplit=5) for line in maps.splitlines())
    files = {os.path.realpath(columns[5]) for columns in mappings if len(columns) == 6}
    variables = variables_of(started, files)
    before = earlier.variables["preloaded"] if earlier else {}
    preloads = variables["preloaded"]
    preloads.update({entry: "mapped" for entry in preloads if before.get(entry) == "mapped"})
    return Look(block, variables, allocator(started, files))


def allocator(started: Mapping[str, str], files: Collection[str]) -> str | None:
    """Return the allocator whose ``malloc`` the loader takes, for a process with these variables and mapped ``files``.

    It is that of the first library with one, preloads before all others; else glibc's.

    None for a program that has no C library mapped, as one that is linked statically.
    """
    first = [real for entry in preloaded(started.get("LD_PRELOAD", "")) if (real := os.path.realpath(entry)) in files]
    candidates = [name for file in [*first, *sorted(files)] if (name := named_as(file, "allocator"))]
    # else glibc's
    taken = next((name for name in candidates if LIBRARIES[name].files), candidates[0] if candidates else None)
    return LIBRARIES[taken].shows[1] if taken else None


def variables_of(started: Mapping[str, str], mapped: Iterable[str], otherwise: str = NOT_MAPPED) -> Variables:
    """Return the evidence of a process that was started with these variables and has these files mapped."""
    files = set(mapped)
    entries = preloaded(started.get("LD_PRELOAD", ""))
    return {
        "sensitive": {name: value for name, value in sorted(started.items()) if is_performance_variable(name)},
        "preloaded": {entry: "mapped" if os.path.realpath(entry) in files else otherwise for entry in entries},
    }
