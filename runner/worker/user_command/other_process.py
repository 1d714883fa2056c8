"""What can be seen of another process from outside: the variables it was given, and which preloads it has mapped."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from runner.worker.evidence.malloc import GLIBC, UNKNOWN, allocator_of
from runner.worker.initial_environment import started_with
from runner.worker.performance_variables import is_performance_variable, preloaded

NOT_MAPPED = "not mapped"
ALLOCATOR = "allocator"


def look(pid: int, earlier: dict[str, Any] | None) -> dict[str, Any] | None:
    """The ``variables`` of evidence for the process now; what was seen ``earlier`` where it has just ended.

    A preload that was mapped once counts as mapped.
    """
    try:
        block = Path(f"/proc/{pid}/environ").read_bytes()
        maps = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape")  # file names are any bytes
    except OSError:
        return earlier
    if not block or not maps:  # of a process that has ended
        return earlier
    given = started_with(block.decode(errors="surrogateescape"))
    columns = (line.split(maxsplit=5) for line in maps.splitlines())
    files = {os.path.realpath(one[5]) for one in columns if len(one) == 6}
    found = {**seen(given, files), ALLOCATOR: allocator(given, files)}
    before = earlier["preloaded"] if earlier else {}
    found["preloaded"] |= {entry: "mapped" for entry in found["preloaded"] if before.get(entry) == "mapped"}
    return found


def allocator(given: Mapping[str, str], files: Collection[str]) -> str | None:
    """Whose ``malloc`` the loader takes: that of the first library with one, preloads before all others; else glibc's.

    None for a program that has no C library mapped, as one that is linked statically.
    """
    first = [real for entry in preloaded(given.get("LD_PRELOAD", "")) if (real := os.path.realpath(entry)) in files]
    known = [found for file in [*first, *sorted(files)] if (found := allocator_of(file)) != UNKNOWN]
    return next((one for one in known if one != GLIBC), GLIBC if GLIBC in known else None)


def seen(given: Mapping[str, str], mapped: Iterable[str], otherwise: str = NOT_MAPPED) -> dict[str, Any]:
    """The ``variables`` of evidence for a process that was given these variables and has these files mapped."""
    files = set(mapped)
    entries = preloaded(given.get("LD_PRELOAD", ""))
    return {
        "sensitive": {name: value for name, value in sorted(given.items()) if is_performance_variable(name)},
        "preloaded": {entry: "mapped" if os.path.realpath(entry) in files else otherwise for entry in entries},
    }
