"""Checks of the machine: what else runs on it, and how it is set up."""

from __future__ import annotations

from envkit.checks.doctor.finding import Finder, Finding, Situation

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
    return Finding(
        "other-load", "warn",
        f"other processes use {load.busy_cpus:.1f} of {online} CPUs",
        "an OpenMP team waits for its slowest thread, so one busy core slows all of them",
        "find them with: top -o %CPU; stop them, or measure when the machine is quiet",
    )  # fmt: skip


def steal(situation: Situation) -> Finding | None:
    load, online = situation.load, situation.facts["online_cpus"]
    if load is None or load.steal_cpus < STEAL_SHARE * online:
        return None
    return Finding(
        "steal", "warn",
        f"the hypervisor withholds {load.steal_cpus:.2f} of {online} CPUs (steal)",
        "other virtual machines share these cores; timings drift with what they do",
        "use a machine with dedicated CPUs, or a longer --budget",
    )  # fmt: skip


def swapping(situation: Situation) -> Finding | None:
    load = situation.load
    if load is None or load.swapped_bytes_per_s == 0:
        return None
    return Finding(
        "swapping", "warn",
        f"the machine swaps {load.swapped_bytes_per_s / 2**20:.1f} MiB/s",
        "a page that was swapped out takes milliseconds to come back",
        "free memory, or: sudo swapoff -a",
    )  # fmt: skip


def governor(situation: Situation) -> Finding | None:
    machine = situation.fingerprint
    if machine["governor"] != "powersave" or machine["frequency_driver"] in SCALING_DRIVERS:
        return None
    return Finding(
        "governor", "warn",
        "the CPU frequency governor is powersave",
        "cores stay at their lowest frequency whatever the load",
        "sudo cpupower frequency-set -g performance",
    )  # fmt: skip


def small_shm(situation: Situation) -> Finding | None:
    size = situation.seen("limits", "shm_bytes")
    if size is None or size >= SHM_BYTES:
        return None
    return Finding(
        "small-shm", "note",
        f"/dev/shm has {size / 2**20:.0f} MiB",
        "DataLoader workers hand batches over through it, and die with a bus error when it is full",
        "docker run --shm-size 2g",
    )  # fmt: skip


def fixed_addresses(situation: Situation) -> Finding | None:
    """Source: T. Mytkowicz and others: Producing wrong data without doing anything obviously wrong! ASPLOS 2009."""
    aslr = situation.fingerprint.get("aslr") or ""
    if not aslr.startswith("off"):
        return None
    fix = "sudo sysctl kernel.randomize_va_space=2" if aslr == "off" else "start it without setarch -R or a debugger"
    return Finding(
        "fixed-addresses", "warn",
        f"address space randomisation is {aslr}",
        "every sample has the same memory layout: a lucky or unlucky one looks like an effect of the profile",
        fix,
    )  # fmt: skip


MACHINE_CHECKS: tuple[Finder, ...] = (
    other_load, steal, swapping, governor, small_shm, fixed_addresses,
)  # fmt: skip
