"""What can be seen of another process from outside: the variables it was given, and which preloads it has mapped."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from envkit.worker.initial_environment import Block, block_of
from envkit.worker.libraries import LIBRARIES, named_as
from envkit.worker.performance_variables import is_performance_variable, preloaded

NOT_MAPPED = "not mapped"
ALLOCATOR = "allocator"


class Look(NamedTuple):
    """``variables`` are those of evidence, with the allocator besides."""

    block: Block
    variables: dict[str, Any]


def look(pid: int, earlier: Look | None) -> Look | None:
    """Return what is seen of the process now; what was seen ``earlier`` where it has just ended.

    A preload that was mapped once counts as mapped.
    """
    try:
        block = block_of(pid, earlier.block if earlier else None)
        maps = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")  # file names are any bytes
    except OSError:
        return earlier
    if block is None or not maps:  # of a process that has ended
        return earlier
    given = block.variables()
    columns = (line.split(maxsplit=5) for line in maps.splitlines())
    files = {os.path.realpath(one[5]) for one in columns if len(one) == 6}
    found = {**seen(given, files), ALLOCATOR: allocator(given, files)}
    before = earlier.variables["preloaded"] if earlier else {}
    found["preloaded"].update({entry: "mapped" for entry in found["preloaded"] if before.get(entry) == "mapped"})
    return Look(block, found)


def allocator(given: Mapping[str, str], files: Collection[str]) -> str | None:
    """Whose ``malloc`` the loader takes: that of the first library with one, preloads before all others; else glibc's.

    None for a program that has no C library mapped, as one that is linked statically.
    """
    first = [real for entry in preloaded(given.get("LD_PRELOAD", "")) if (real := os.path.realpath(entry)) in files]
    known = [found for file in [*first, *sorted(files)] if (found := named_as(file, "allocator"))]
    name = next((one for one in known if LIBRARIES[one].files), known[0] if known else None)  # else glibc's
    return LIBRARIES[name].shows[1] if name else None


def seen(given: Mapping[str, str], mapped: Iterable[str], otherwise: str = NOT_MAPPED) -> dict[str, Any]:
    """The ``variables`` of evidence for a process that was given these variables and has these files mapped."""
    files = set(mapped)
    entries = preloaded(given.get("LD_PRELOAD", ""))
    return {
        "sensitive": {name: value for name, value in sorted(given.items()) if is_performance_variable(name)},
        "preloaded": {entry: "mapped" if os.path.realpath(entry) in files else otherwise for entry in entries},
    }
