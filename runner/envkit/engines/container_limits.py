"""Are the limits that a container engine was asked for in force inside? Some engines take one and only warn."""

from __future__ import annotations

import re
from collections.abc import Callable

from envkit.common.errors import InputError
from envkit.engines.base import EngineOptions
from envkit.engines.inspection import Inspection
from envkit.engines.setup_messages import BadMemory, LimitNotInForce
from envkit.worker.host import expand_cpu_list

# Megabytes and the like as Docker's own command line reads them.
UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}
SIZE = re.compile(r"(\d+)([bkmg]?)")
# A quota is kept in whole microseconds of a period.
ROUNDING = 1.01


def memory_bytes(text: str) -> int:
    """Bytes of ``4g``. Raises InputError for a text that is none."""
    match = SIZE.fullmatch(text.lower())
    if match is None:
        raise InputError(BadMemory(text))
    return int(match.group(1)) * UNITS[match.group(2)]


def require_in_force(given: EngineOptions, engine: str, inspection: Inspection) -> None:
    """Raise InputError where what an image's worker sees is more than what was asked for.

    Podman without root ignores limits where control groups are of version 1, or without systemd. The measurement would
    then be one of the whole machine, in the name of a part of it. A CPU quota and a memory limit are known from control
    groups only: where no group can be seen, as under Apptainer with root's rights, nothing can be said of the two.
    """
    facts = inspection["facts"]
    # Podman and Apptainer read more than Docker does: 1.5g, 4gib
    memory = given.memory if given.memory and SIZE.fullmatch(given.memory.lower()) else None
    asked: dict[str, tuple[str | None, Callable[[str], float], float | None]] = {
        "cpus": (given.cpus, lambda text: float(text) * ROUNDING, facts["cpu_quota"]),
        "cpuset_cpus": (given.cpuset_cpus, lambda text: len(expand_cpu_list(text)), facts["affinity_cpus"]),
        "memory": (memory, memory_bytes, inspection["memory_limit"]),
    }
    for name, (text, most, seen) in asked.items():
        told = inspection["groups_seen"] or name == "cpuset_cpus"
        if text is not None and told and (seen is None or seen > most(text)):
            option = f"--{name.replace('_', '-')} {text}"
            raise InputError(LimitNotInForce(option, engine))
