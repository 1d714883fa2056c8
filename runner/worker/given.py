"""The variables that a process was started with, which need not be those that it has."""

from __future__ import annotations


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
