"""Notice early that a run is measured beside other programs, and name these, so that the user can stop them.

Programs are looked for between blocks, while no worker is timed. The observations decide nothing: blocks count as they
would without them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from envkit.bench.events import OtherPrograms, Program, Sample
from envkit.bench.messages import BesidePrograms, Disturbed
from envkit.bench.messages import Program as NamedProgram
from envkit.bench.run import Run
from envkit.checks.interference import OTHERS, disturbances, interference_in
from envkit.messages import Message

# A run warns after so many disturbed blocks in a row, and so large a share of all blocks until then. The share is more
# than that of a report (analysis.load.MOST). Here a disturbed sample of any arm counts, and there one of the two arms
# of a comparison: with many arms most blocks have some disturbed sample, and few comparisons do.
IN_A_ROW, NEARLY_ALL = 2, 0.8
# A program is named from so many CPUs on; and no more than so many are.
LEAST_CPUS, MOST_PROGRAMS = 0.05, 3
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """Hold a process's name, parent, start and used CPU time (in ticks), from /proc/PID/stat."""

    name: str
    parent: int
    began: int
    ticks: int


class Neighbours:
    """Looks at /proc before the first block and after each one, until it has seen a load."""

    def __init__(self) -> None:
        self._time_s, self._before = time.monotonic(), processes()
        self._done = False

    def after_block(self, run: Run, block: int) -> tuple[OtherPrograms, Message] | None:
        """Return the event and the warning of a disturbed run, once.

        A run is disturbed after IN_A_ROW disturbed blocks where nearly all were until then.
        """
        if self._done or run.first(OtherPrograms):
            self._done = True
            return None
        before, since_s = self._before, self._time_s
        self._time_s, self._before = time.monotonic(), processes()
        hit = {sample.block: sample for sample in run.samples() if disturbances(sample.usage, sample.seconds)}
        in_a_row = all(number in hit for number in range(block - IN_A_ROW + 1, block + 1))
        if not in_a_row or len(hit) < NEARLY_ALL * (block + 1):
            return None
        self._done = True
        used = busiest(before, self._before, self._time_s - since_s)
        return OtherPrograms(block=block, programs=used), _message([*hit.values()], used)


def processes(proc: Path = PROC) -> dict[int, Process]:
    """Return the processes of this machine by their numbers (proc_pid_stat(5)); one that ends meanwhile is left out."""
    running = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text(errors="replace")
                name, _, after_name = text.partition("(")[2].rpartition(") ")
                fields = after_name.split()
                ticks = int(fields[11]) + int(fields[12])
                running[int(folder.name)] = Process(name, int(fields[1]), int(fields[19]), ticks)
            except (OSError, ValueError, IndexError):
                continue
    return running


def busiest(before: Mapping[int, Process], after: Mapping[int, Process], seconds: float) -> list[Program]:
    """Return the programs that used most CPU time between two looks, but for this process and its descendants."""
    programs: list[Program] = []
    for pid, process in after.items():
        earlier = before.get(pid)
        if earlier is None or earlier.began != process.began or _is_ours(pid, after):
            continue
        cpus = (process.ticks - earlier.ticks) / TICKS_PER_S / max(seconds, 1 / TICKS_PER_S)
        if cpus >= LEAST_CPUS:
            programs.append(Program(name=process.name, pid=pid, cpus=round(cpus, 2)))
    return sorted(programs, key=lambda program: program.cpus, reverse=True)[:MOST_PROGRAMS]


def _is_ours(pid: int, all_of_them: Mapping[int, Process]) -> bool:
    """Return whether a process is this one or descends from it."""
    while pid in all_of_them:
        if pid == os.getpid():
            return True
        pid = all_of_them[pid].parent
    return False


def _message(hit: Sequence[Sample], programs: Sequence[Program]) -> Message:
    """Return what disturbs the run, and what to do about it."""
    kinds = [disturbances(sample.usage, sample.seconds) for sample in hit]
    used = [amounts[OTHERS] for amounts in kinds if OTHERS in amounts]
    last = hit[-1]
    if OTHERS in kinds[-1]:
        named = tuple(NamedProgram(program.name, program.pid, program.cpus) for program in programs)
        return BesidePrograms(median(used), last.usage.worker_cpus or 0, named)
    return Disturbed(tuple(interference_in(last.usage, last.seconds)))
