"""Checks of the machine: what else runs on it, and how it is set up."""

from __future__ import annotations

from envkit.checks.doctor.finding import Finder, Finding, Situation, found
from envkit.checks.finding_messages import (
    FixedAddresses,
    Loaded,
    PowersaveGovernor,
    SmallShm,
    StartWithoutSetarch,
    Stolen,
    Swaps,
)

# The share of a machine's CPUs that others may use before it shows in a measurement, and the share that may be stolen.
OTHERS_SHARE = 0.10
STEAL_SHARE = 0.03
# Drivers whose "powersave" scales with the load (kernel documentation, admin-guide/pm/intel_pstate and amd-pstate).
SCALING_DRIVERS = ("intel_pstate", "amd-pstate-epp")
SHM_BYTES = 512 * 2**20


def other_load(situation: Situation) -> Finding | None:
    load, online = situation.load, situation.facts["online_cpus"]
    if load is None or load.busy_cpus < OTHERS_SHARE * online:
        return None
    return found("other-load", Loaded(load.busy_cpus, online))


def steal(situation: Situation) -> Finding | None:
    load, online = situation.load, situation.facts["online_cpus"]
    if load is None or load.steal_cpus < STEAL_SHARE * online:
        return None
    return found("steal", Stolen(load.steal_cpus, online))


def swapping(situation: Situation) -> Finding | None:
    load = situation.load
    if load is None or load.swapped_bytes_per_s == 0:
        return None
    return found("swapping", Swaps(load.swapped_bytes_per_s))


def governor(situation: Situation) -> Finding | None:
    machine = situation.fingerprint
    if machine["governor"] != "powersave" or machine["frequency_driver"] in SCALING_DRIVERS:
        return None
    return found("governor", PowersaveGovernor())


def small_shm(situation: Situation) -> Finding | None:
    size = situation.number("limits", "shm_bytes")
    if size is None or size >= SHM_BYTES:
        return None
    return found("small-shm", SmallShm(size))


def fixed_addresses(situation: Situation) -> Finding | None:
    """Source: T. Mytkowicz and others: Producing wrong data without doing anything obviously wrong! ASPLOS 2009."""
    aslr = situation.fingerprint.get("aslr") or ""
    if not aslr.startswith("off"):
        return None
    return found("fixed-addresses", FixedAddresses(aslr), None if aslr == "off" else StartWithoutSetarch())


MACHINE_CHECKS: tuple[Finder, ...] = (
    other_load, steal, swapping, governor, small_shm, fixed_addresses,
)  # fmt: skip
