"""Messages of the analysis."""

from __future__ import annotations

from envkit.messages import Caution, Message

MACHINE_SWAPPED, CPUS_HOT = "the machine swapped", "CPU cores were too hot"

FOLDER_OF_RUNS = "give a folder that holds runs"
# What each kind of interference is, by its name in envkit.checks.interference, as a clause with the machine as "it".
KINDS = {
    "other-programs": "other programs used its CPUs",
    "stolen": "the hypervisor withheld CPU time",
    "swapping": "it swapped",
    "hot-cores": "its cores were too hot",
}


# --- the load beside which a result was measured ---


class BesideOtherPrograms(Caution):
    template = "measured beside other programs that used {cpus:.2g} of {usable_cpus:g} CPUs"

    cpus: float
    usable_cpus: float


class WhileStolen(Caution):
    template = "measured while the hypervisor withheld {cpus:.2g} of {usable_cpus:g} CPUs"

    cpus: float
    usable_cpus: float


class While(Caution):
    """A result was measured while something else was the matter."""

    template = "measured while {what}"

    what: str  # MACHINE_SWAPPED or CPUS_HOT


# --- baselines ---


class NoReadings(Message):
    """Blocks of a run have no reading of the reference kernel. ``problem`` is that of its worker."""

    template = (
        "{folder}: {missing} of {blocks:count block} have no reference kernel, because the worker {problem}; "
        "no later run could be compared with it: measure again"
    )

    folder: str
    missing: int
    blocks: int
    problem: Message
