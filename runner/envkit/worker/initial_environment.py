"""The variables that a process was started with, which need not be those that it has.

A program may take variables out of its environment, for the sake of the processes that it starts, or set others. What
libraries read when the process started stays as it was. They read others when torch is imported, or later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# What /proc/self/environ held when the program began, where that was kept: one that gives itself a title (setproctitle)
# writes over it.
AT_START: bytes | None = None
# The variables when torch was imported, and /proc/self/maps just before, where the evidence hook kept them.
AT_TORCH: Mapping[str, str] | None = None
MAPPED_BEFORE_TORCH = ""


def started_variables() -> dict[str, str]:
    """The variables that this process was started with."""
    block = Path("/proc/self/environ").read_bytes() if AT_START is None else AT_START
    return started_with(block.decode(errors="surrogateescape"))


def started_with(block: str) -> dict[str, str]:
    """The variables in ``NAME=VALUE`` entries that end in NUL, as /proc/PID/environ has them.

    The loaders of some glibc versions cut GLIBC_TUNABLES at its colons, in place: the pieces are put together again.
    """
    variables: dict[str, str] = {}
    for entry in block.split("\0"):
        name, equals, value = entry.partition("=")
        if name.startswith("glibc.") and "GLIBC_TUNABLES" in variables:
            variables["GLIBC_TUNABLES"] += f":{entry}"
        elif equals:
            variables[name] = value
    return variables


class Block:
    """The variables of another process as they were at the first look at its ``program``.

    A program is told from the next in the same process by where its variables lie.
    """

    def __init__(self, program: tuple[str, str], text: bytes) -> None:
        self.program = program
        self.text = text

    def variables(self) -> dict[str, str]:
        return started_with(self.text.decode(errors="surrogateescape"))


def block_of(pid: int, earlier: Block | None) -> Block | None:
    """What /proc/PID/environ holds, or held at an ``earlier`` look at the same program, which may write over it since.

    Returns ``earlier`` where there is nothing to be read any more. Raises OSError where the process has gone.
    """
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()  # proc(5), from the third
    program = fields[19], fields[47]
    if earlier is not None and earlier.program == program:
        return earlier
    text = Path(f"/proc/{pid}/environ").read_bytes()
    return Block(program, text) if text else earlier


def changed() -> dict[str, dict[str, str | None]]:
    """Return the variables that this program has changed since it started, by name.

    ``now`` is the value, and ``at_torch`` the one when torch was imported, where that is known; None stands for a
    variable that is not set.
    """
    started, now, at_torch = started_variables(), os.environ, AT_TORCH
    values: dict[str, dict[str, str | None]] = {}
    for name in sorted({*started, *now, *(at_torch or ())}):
        values_by_time = {"now": now.get(name), **({} if at_torch is None else {"at_torch": at_torch.get(name)})}
        if {*values_by_time.values()} != {started.get(name)}:
            values[name] = values_by_time
    return values
