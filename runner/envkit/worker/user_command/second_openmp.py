"""Find the second OpenMP runtime of Intel's or LLVM's in a program that aborted while a profile preloads the first.

A runtime of theirs ends the process if it finds another one (``OMP: Error #15``). It names neither file. A dead process
has no map of its files, so the evidence hook notes which libraries a program loads if a runtime is preloaded.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from envkit.messages import Message
from envkit.worker import left
from envkit.worker.libraries import is_alone
from envkit.worker.messages.user_command import SecondOpenMP
from envkit.worker.performance_variables import preloaded

if TYPE_CHECKING:
    from typing import TypeGuard

# What an aborted command ends with: its own signal, or a shell's status for that.
ABORTED = (-signal.SIGABRT, 128 + signal.SIGABRT)
# Where a package keeps libraries that its modules load, from the module's folder: auditwheel's folder among them.
BESIDE = ("", "lib", ".libs", "../*.libs", "../../*.libs", "../lib")


def second_runtime(folder: Path, preload: str, ended: Message | None = None) -> SecondOpenMP | None:
    """Return which runtime is preloaded and which a program loads besides; None if no process had two.

    ``folder`` has what the evidence hook left, ``preload`` is the value of LD_PRELOAD, and ``ended`` says how the
    command ended.
    """
    first = next((path for path in preloaded(preload) if is_alone(path)), None)
    if first is None:
        return None
    for document in left.read(folder, "libraries.*", _holds).documents:
        if Path(folder, f"{document['pid']}.json").exists():  # it lived to its end
            continue
        for path, where in reversed(document["libraries"]):
            second = next((runtime for runtime in _runtimes(path) if not is_same(runtime, first)), None)
            if second is not None:
                return SecondOpenMP(first, second, where, ended)
    return None


class _LibrariesDocument(TypedDict):
    """The libraries that a process loaded, each with the line of the program that did."""

    pid: int
    libraries: list[tuple[str, str]]


def _holds(document: dict[str, object]) -> TypeGuard[_LibrariesDocument]:
    pairs = document["libraries"]
    return (
        isinstance(document["pid"], int)
        and isinstance(pairs, list)
        and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
        and all(isinstance(word, str) for pair in pairs for word in pair)
    )


def _runtimes(path: str) -> Iterator[str]:
    """Yield the runtime that a library is, or those that lie where its package keeps its libraries."""
    if is_alone(path):
        yield path
        return
    if "/" in path:
        for place in BESIDE:
            beside = Path(path).parent.glob(f"{place}/*.so*" if place else "*.so*")
            yield from filter(is_alone, map(str, sorted(beside)))


def is_same(path: str, other: str) -> bool:
    """Return whether two paths lead to one file."""
    return Path(path).resolve() == Path(other).resolve()
