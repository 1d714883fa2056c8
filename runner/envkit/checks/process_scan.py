"""Observe a command and its processes from outside, through /proc.

It shows only a process's initial environment and its mapped files, for programs without the evidence hook. Looking
takes about a millisecond per process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envkit.checks.process_messages import (
    HadVariables,
    NoneHad,
    NoProcessSeen,
    NotMapped,
    OfProcess,
    OtherValue,
    SomeLacked,
)
from envkit.messages import Message
from envkit.profiles.environment import Environment
from envkit.worker.initial_environment import Block, block_of
from envkit.worker.performance_variables import extends
from envkit.worker.user_command import lost_hook

MOMENTS_S = (0.05, 1.0, 3.0, 10.0)  # after the start; then once in every INTERVAL_S
INTERVAL_S = 60.0
LONGEST_COMMAND = 60


def moments() -> Iterator[float]:
    """Yield when to look, in seconds after the start."""
    yield from MOMENTS_S
    last = MOMENTS_S[-1]
    while True:
        last += INTERVAL_S
        yield last


class Seen:
    """One process: its command line, the variables that it was started with, and the files that are mapped.

    ``lost`` says why it runs without the evidence hook, where it uses torch and should have one.
    """

    def __init__(self, argv: Sequence[str], block: Block, mapped: frozenset[str], lost: Message | None = None) -> None:
        self.argv = list(argv)
        self.lost = lost
        self.block = block
        self._mapped = mapped

    def wrong(self, environment: Environment) -> list[Message]:
        """Return the preloads and variables that it lacks, but for PYTHONPATH, which names the evidence hook too."""
        variables = self.block.variables()
        missing: list[Message] = [
            NotMapped(library)
            for library, path in environment.preload.items()
            if os.path.realpath(path) not in self._mapped
        ]
        present = {name: variables.get(name, "not set") for name in environment.variables if name != "PYTHONPATH"}
        return missing + [
            OtherValue(name, present[name], value)
            for name, value in environment.variables.items()
            if name in present and present[name] != value and not extends(name, present[name], value)
        ]


def look(pid: int, command: Sequence[str], evidence: Path, earlier: Mapping[int, Seen]) -> Iterator[tuple[int, Seen]]:
    """``pid``, which runs ``command``, and what descends from it: those that have begun to run their program.

    The hook leaves what it has seen in the folder ``evidence``. A process that was seen ``earlier`` may have
    written over the variables that it was started with.
    """
    todo = [(pid, " ".join(command))]
    while todo:
        process, starter = todo.pop()
        folder = Path(f"/proc/{process}")
        try:
            block = block_of(process, earlier[process].block if process in earlier else None)
            argv = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            lines = (folder / "maps").read_bytes().decode(errors="replace").splitlines()  # last: empty where it ended
            for task in (folder / "task").iterdir():
                todo += [(int(child), " ".join(argv)) for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it has ended, or is another user's
        mapped = frozenset(columns[5] for line in lines if len(columns := line.split(maxsplit=5)) == 6)
        if block is not None and _has_begun(mapped):
            is_lost = lost_hook.is_lost(process, mapped, evidence)
            why = lost_hook.why(process, argv, block.variables(), starter) if is_lost else None
            yield process, Seen(argv, block, mapped, why)


def _has_begun(mapped: frozenset[str]) -> bool:
    """Whether the loader has done its work: it maps what is preloaded before the C library.

    A program without a loader, a static one, has begun as soon as it is there.
    """
    names = {path.rpartition("/")[2] for path in mapped}
    loaded = any(name.startswith(("ld-linux", "ld64.", "ld-musl", "ld.so", "ld-2.")) for name in names)
    return any(name.startswith(("libc.so", "libc-2.", "ld-musl")) for name in names) if loaded else bool(names)


def verdict(environment: Environment, seen: Mapping[int, Seen]) -> tuple[bool | None, list[Message]]:
    """Return whether the processes had the environment, as far as is visible, and what to tell the user.

    None means unknown: if only some had it, any of them may have trained. A shell may have had it and its child not.
    """
    name = environment.profile
    if not seen:
        return None, [NoProcessSeen(name)]
    problems = {pid: process.wrong(environment) for pid, process in seen.items()}
    good = sum(not of_process for of_process in problems.values())
    if good == len(seen):
        # what it expects beyond these, of an OpenMP runtime for example, is not known
        had = HadVariables(name, good, len(seen), tuple(environment.preload))
        return None if environment.expect else True, [had]
    lines: list[Message] = [SomeLacked(name, len(seen) - good, len(seen)) if good else NoneHad(name)]
    for pid, of_process in problems.items():
        lines += [OfProcess(problem, pid, shorter(seen[pid].argv)) for problem in of_process]
    return None if good else False, lines


def lost(seen: Mapping[int, Seen]) -> list[Message]:
    """Return a message for each process that uses torch without the evidence hook."""
    return [process.lost for process in seen.values() if process.lost is not None]


def shorter(argv: Sequence[str]) -> str:
    """Return a command line, cut if it is long."""
    text = " ".join(" ".join(argv).split())
    return text if len(text) <= LONGEST_COMMAND else f"{text[: LONGEST_COMMAND - 1]}…"
