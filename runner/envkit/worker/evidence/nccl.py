"""Read what NCCL chose from its own log: it tells nobody else.

It writes one where NCCL_DEBUG is INFO and NCCL_DEBUG_FILE names a file that each process has for itself. The lines are
those of the NCCL user guide, "Logging", and of its source; only some of them are there with fewer NCCL_DEBUG_SUBSYS.
"""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from envkit.worker.initial_environment import started_variables

LEVELS = ("INFO", "TRACE")
# It is written while training goes on, one line for each call at worst.
MOST_BYTES = 16 * 2**20
MOST_WARNINGS = 5
VERSION = re.compile(r"NCCL version (\d[\w.+-]*)")
# "NCCL_SHM_DISABLE set by environment to 1." and "NCCL_ALGO set by environment to Ring": a number ends in a full stop.
SETTING = re.compile(r"NCCL INFO (NCCL_\w+) set by environment to (.*)$", re.MULTILINE)
NETWORK = re.compile(r"NCCL INFO Using network (\S+)")
# "NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.0.1.1<0>"
SOCKETS = re.compile(r"NCCL INFO NET/Socket ?: Using (.*)$", re.MULTILINE)
INTERFACE = re.compile(r"\[\d+\]([^:\s]+):")
# "Bootstrap: Using eth0:10.0.0.1<0>", and before 2.24 with a blank before the colon: what ranks find each other by
BOOTSTRAP = re.compile(r"NCCL INFO Bootstrap ?: Using (?:\[\d+\])?([^:\s]+):")
# "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"
CONNECTION = re.compile(
    r"NCCL INFO Channel \d+(?:/\d+)? : \d+\[\w+\] -> \d+\[\w+\](?: \[\w+\])? via (\S+(?: pointer\S*)?)"
)
# "8 coll channels, 0 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer"
CHANNELS = re.compile(r"(\d+) coll channels")
# "Channel 00/02 :    0   1": the first of two
CHANNEL_OF = re.compile(r"NCCL INFO Channel \d+/(\d+) : +\d+(?: +\d+)* *$", re.MULTILINE)
RING = re.compile(r"NCCL INFO Ring (\d+) :")
TREE = re.compile(r"NCCL INFO Tree (\d+) :")
# "AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}"
CHOICE = re.compile(r"NCCL INFO (\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)")
RANKS = re.compile(r"\brank (\d+) nranks (\d+) .*Init COMPLETE")
WARNING = re.compile(r"NCCL WARN (.+)$", re.MULTILINE)


class Choice(TypedDict):
    """How calls of one collective were carried out, with the least and the greatest size in bytes."""

    collective: str
    algorithm: str
    protocol: str
    calls: int
    least_bytes: int
    most_bytes: int


def probe() -> dict[str, object]:
    """Parse the log, if one was asked for. ``log`` is ``written`` or ``not written``, as when NCCL was not used.

    NCCL reads its variables when the first communicator is made, until when the program may change them.
    """
    logs = [log for variables in (os.environ, started_variables()) if (log := _log(variables)) is not None]
    path = next((log for log in logs if log.is_file()), None)
    if path is None:
        return {"log": "not written"} if logs else {}
    with path.open("rb") as file:
        return {"log": "written", **parse(file.read(MOST_BYTES).decode(errors="replace"))}


def _log(variables: Mapping[str, str]) -> Path | None:
    """Return the log that ``variables`` ask NCCL for; None where they ask for none."""
    if variables.get("NCCL_DEBUG", "").upper() not in LEVELS or not variables.get("NCCL_DEBUG_FILE"):
        return None
    return Path(log_name(variables["NCCL_DEBUG_FILE"], platform.node(), os.getpid()))


def log_name(pattern: str, host: str, process: int) -> str:
    """Return the file that NCCL makes of NCCL_DEBUG_FILE: %h is the host's short name, %p the process, %% a %."""
    texts = {"h": re.sub("[%/]", "-", host.partition(".")[0]), "p": str(process), "%": "%"}
    return re.sub(r"%(.)", lambda match: texts.get(match.group(1), match.group()), pattern)


def parse(log: str) -> dict[str, object]:
    """Return what a log says, as far as it does; a text that lists several has them in alphabetical order.

    ``transports`` are the ways between ranks, ``NET``, ``P2P`` or ``SHM``, and ``paths`` counts their connections by
    the whole of what NCCL calls each; ``rings`` and ``trees`` are what it made ready, ``algorithms`` and ``protocols``
    what it then took (for which TUNING must be among the subsystems), and ``choices`` counts these by collective, with
    the least and the greatest size in bytes. ``settings`` are the variables that it read, numbers as numbers.
    """
    paths = Counter(match.group(1) for match in CONNECTION.finditer(log))
    choices = _choices(log)
    version, network, ranks = VERSION.search(log), NETWORK.search(log), RANKS.search(log)
    interfaces = {name for match in SOCKETS.finditer(log) for name in INTERFACE.findall(match.group(1))}
    interfaces |= {match.group(1) for match in BOOTSTRAP.finditer(log)}
    warnings = dict.fromkeys(match.group(1).strip() for match in WARNING.finditer(log))
    return {
        "version": version.group(1) if version else None,
        "rank": int(ranks.group(1)) if ranks else None,
        "ranks": int(ranks.group(2)) if ranks else None,
        "network": network.group(1) if network else None,
        "interfaces": _listed(interfaces),
        "transports": _listed({path.split("/")[0] for path in paths}),
        "paths": dict(sorted(paths.items())),
        "channels": _channels(log),
        "rings": len({match.group(1) for match in RING.finditer(log)}),
        "trees": len({match.group(1) for match in TREE.finditer(log)}),
        "algorithms": _listed({choice["algorithm"] for choice in choices}),
        "protocols": _listed({choice["protocol"] for choice in choices}),
        "choices": choices,
        "settings": {match.group(1): _value(match.group(2)) for match in SETTING.finditer(log)},
        "warnings": list(warnings)[:MOST_WARNINGS],
    }


def _listed(names: set[str]) -> str | None:
    return ", ".join(sorted(names)) or None


def _value(text: str) -> str | int:
    """Return a number, as NCCL prints it with a full stop behind it, or the text that it was given."""
    match = re.fullmatch(r"(-?\d+)\.?", text.strip())
    return int(match.group(1)) if match else text.strip()


def _channels(log: str) -> int | None:
    """Return those for collectives; older versions only number them."""
    counted = CHANNELS.search(log) or CHANNEL_OF.search(log)
    return int(counted.group(1)) if counted else None


def _choices(log: str) -> list[Choice]:
    calls: dict[tuple[str, str, str], list[int]] = {}
    for match in CHOICE.finditer(log):
        collective, size, algorithm, protocol = match.groups()
        calls.setdefault((collective, algorithm.lower(), protocol.lower()), []).append(int(size))
    return [
        {
            "collective": collective, "algorithm": algorithm, "protocol": protocol, "calls": len(sizes),
            "least_bytes": min(sizes), "most_bytes": max(sizes),
        }
        for (collective, algorithm, protocol), sizes in sorted(calls.items())
    ]  # fmt: skip
