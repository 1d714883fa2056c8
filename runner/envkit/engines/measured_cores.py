"""Measured cores: which usable CPUs share a core, as measured on this machine and kept in the user's cache.

A virtual machine's kernel may call two hardware threads of one core two cores, or two cores one. ``envkit doctor``
measures it (``envkit.checks.core_measurement``), and every inspection of this machine then counts the measured cores.
A file of another machine or of other CPUs, or a damaged one, counts as none: the kernel's count stays until doctor
measures again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Collection
from datetime import date
from pathlib import Path
from typing import cast

import msgspec
from msgspec import Struct

from envkit.common import atomic, codec, documents, files, folders
from envkit.common.errors import MISFITS, InputError
from envkit.engines.messages import NoCacheFolder
from envkit.profiles.inspection import Facts, Inspection
from envkit.worker.host import cpu_facts, expand_cpu_list, fingerprint, usable_cpus

# Facts of the fingerprint that are the same inside a container of this machine, and not on most others.
OF_MACHINE = ("cpu_model", "cpu_numbers", "architecture", "kernel", "memory_bytes")


class MeasuredCores(Struct, frozen=True):
    """A measurement. ``cpus`` and each of ``cores``, which divide them, are in the kernel's list format."""

    cpus: str
    cores: tuple[str, ...]
    day: str  # ISO 8601, UTC

    def count(self, cpus: Collection[int]) -> int:
        """Return how many cores have CPUs of these."""
        return sum(not expand_cpu_list(core).isdisjoint(cpus) for core in self.cores)

    def shared(self, cpus: Collection[int]) -> bool:
        """Return whether a core has several of these CPUs."""
        return any(len(expand_cpu_list(core).intersection(cpus)) > 1 for core in self.cores)


class _Kept(Struct, frozen=True):
    machine: dict[str, str | None]
    measured: tuple[MeasuredCores, ...]  # the latest first


def machine() -> dict[str, str | None]:
    """Return what identifies this machine: its name, its processor, its hypervisor and its online CPUs.

    A boot, or another kernel, changes none of them. A machine of another size, or on another kind of host, does.
    """
    here = fingerprint()
    return {
        "name": platform.node(),
        "cpu": str(here["cpu_model"]),
        "cpu_numbers": None if here["cpu_numbers"] is None else str(here["cpu_numbers"]),
        "hypervisor": None if here["hypervisor"] is None else str(here["hypervisor"]),
        "online_cpus": str(cpu_facts()["online_cpus"]),
    }


def find(cpus: Collection[int]) -> MeasuredCores | None:
    """Return the latest measurement on this machine that covers all these CPUs, or None."""
    with contextlib.suppress(RuntimeError, OSError):  # no home, or one that this user may not read
        folder = _folder()
        if folder.is_dir():  # else the machine need not be looked at
            return next((kept for kept in _read(machine()) if expand_cpu_list(kept.cpus).issuperset(cpus)), None)
    return None


def keep(measured: MeasuredCores) -> None:
    """Keep a measurement, and remove those of the same CPUs or of a part of them.

    Raise InputError if there is no place for the file.
    """
    here = machine()
    try:
        path = _path(here)
    except RuntimeError:
        raise InputError(NoCacheFolder()) from None
    covered = expand_cpu_list(measured.cpus)
    others = (kept for kept in _read(here) if not expand_cpu_list(kept.cpus) <= covered)
    with contextlib.suppress(OSError):  # writing says why
        atomic.make_folder(path.parent)
    atomic.write(path, json.dumps(msgspec.to_builtins(_Kept(here, (measured, *others)))).encode())


def applied(inspection: Inspection) -> Inspection:
    """Return an inspection with the cores that were measured on this machine, or as it is if none were.

    An inspection of another machine, as of a remote engine, stays as it is.
    """
    try:
        cpus = expand_cpu_list(inspection["cpus"])
    except MISFITS:  # an image can say anything
        return inspection
    measured = find(cpus) if cpus else None
    if measured is None or not _is_here(inspection):
        return inspection
    facts = _with_cores(inspection["facts"], measured, cpus)
    applied_to: Inspection = {
        **inspection, "facts": facts, "cores_measured": measured.day, "measured_cores": [*measured.cores],
    }  # fmt: skip
    if (kernel_cores := inspection["facts"]["physical_cores"]) != facts["physical_cores"]:
        applied_to["kernel_cores"] = kernel_cores
    return applied_to


def facts_here() -> Facts:
    """Return the facts of this process on this machine, with the cores that were measured."""
    cpus, facts = usable_cpus(), cast(Facts, cpu_facts())
    measured = find(cpus)
    return facts if measured is None else _with_cores(facts, measured, cpus)


def _with_cores(facts: Facts, measured: MeasuredCores, cpus: Collection[int]) -> Facts:
    cores = min(measured.count(cpus), facts["usable_cpus"])  # a quota may leave fewer
    return {**facts, "physical_cores": cores, "smt": facts["smt"] or measured.shared(cpus)}


def _is_here(inspection: Inspection) -> bool:
    here, there = fingerprint(), inspection["fingerprint"]
    return all(here[fact] == there.get(fact) for fact in OF_MACHINE)


def _folder() -> Path:
    return folders.cache() / "cores"


def _path(here: dict[str, str | None]) -> Path:
    """Several machines may share the home folder, so each has a file of its own."""
    return _folder() / f"{hashlib.sha256(json.dumps(here).encode()).hexdigest()}.json"


def _read(here: dict[str, str | None]) -> tuple[MeasuredCores, ...]:
    """Return what is kept of a machine: nothing if its file is missing, damaged or another machine's."""
    try:
        kept = codec.parse(documents.parse(files.read(_path(here))), _Kept)
        for measured in kept.measured:
            _require_sound(measured)
    except (OSError, *MISFITS):
        return ()
    return kept.measured if kept.machine == here else ()


def _require_sound(measured: MeasuredCores) -> None:
    """Raise ValueError unless the day is one and each of the CPUs is in exactly one of the cores."""
    date.fromisoformat(measured.day)
    in_cores = sorted(cpu for core in measured.cores for cpu in expand_cpu_list(core))
    if not in_cores or in_cores != sorted(expand_cpu_list(measured.cpus)):
        raise ValueError(measured.cores)
