"""Compare this machine with the one on which a tuning found a profile."""

from __future__ import annotations

from pathlib import Path

from envkit.analysis.engine_facts import machine_kind
from envkit.common import documents, files
from envkit.messages import Caution
from envkit.profiles.inspection import Inspection
from envkit.tuning.profile_file import MACHINE, evidence_path

OTHER_MACHINE = "other_machine"  # the key of an environment that exec resolved


class OtherMachine(Caution):
    """A profile won on another kind of machine than this one."""

    template = (
        "profile '{profile}' won on {cpu} with {usable_cpus:count usable CPU}, and this is {this_cpu} with "
        "{this_usable_cpus}: it may not help here; measure it with: envkit bench {profile} -- your training"
    )

    profile: str
    cpu: str
    usable_cpus: int
    this_cpu: str
    this_usable_cpus: int


def difference(name: str, path: Path, inspection: Inspection) -> OtherMachine | None:
    """Return the warning for the profile ``name`` in ``path`` if its tuning ran on another kind of machine, else None.

    Only a profile that a tuning wrote has its machine beside it.
    """
    try:
        then = documents.parse(files.read(evidence_path(path)))[MACHINE]
        won_on = str(then["cpu"]), int(then["usable_cpus"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    here = machine_kind(inspection)
    if won_on == (here["cpu"], here["usable_cpus"]):
        return None
    return OtherMachine(name, *won_on, here["cpu"], here["usable_cpus"])
