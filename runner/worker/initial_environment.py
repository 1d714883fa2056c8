"""The variables that a process was started with, which need not be those that it has."""

from __future__ import annotations

from pathlib import Path

# What /proc/self/environ held when the program began, where that was kept: one that gives itself a title (setproctitle)
# writes over it.
AT_START: bytes | None = None


def own() -> dict[str, str]:
    """The variables that this process was started with."""
    block = Path("/proc/self/environ").read_bytes() if AT_START is None else AT_START
    return started_with(block.decode(errors="surrogateescape"))


def started_with(block: str) -> dict[str, str]:
    """The variables in ``NAME=VALUE`` entries that end in NUL, as /proc/PID/environ has them.

    The loaders of some glibc versions cut GLIBC_TUNABLES at its colons, in place: the pieces are put together again.
    """
    given: dict[str, str] = {}
    for entry in block.split("\0"):
        name, equals, value = entry.partition("=")
        if name.startswith("glibc.") and "GLIBC_TUNABLES" in given:
            given["GLIBC_TUNABLES"] += f":{entry}"
        elif equals:
            given[name] = value
    return given
