"""Recorded facts of an engine and its image, with the names that reports use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypedDict

from envkit.profiles.inspection import Inspection, Surroundings

SHOWN_OF_DIGEST = 12


class MachineKind(TypedDict):
    """The processor, with the numbers that tell its kind, and how many CPUs could be used."""

    cpu: str
    usable_cpus: int


def engine_facts(surroundings: Surroundings) -> dict[str, str | None]:
    """The facts by name; None for what there is not."""
    engine, inspection = surroundings["engine"], surroundings["inspection"]
    found: dict[str, object] = {
        "engine": engine["name"],
        "engine version": engine["version"] if engine["name"] != "local" else None,  # the kernel's, which is below
        "image": engine["image"],
        "image digest": engine.get("digest"),
        "Python": inspection["python"]["version"],
        **{f"package {name}": version for name, version in inspection["packages"].items()},
        "unverified package": inspection["unverified_packages"],
    }
    parts: tuple[Mapping[str, object], ...] = (inspection["fingerprint"], inspection["facts"])
    for part in parts:
        found |= {name.replace("_", " "): value for name, value in part.items()}
    for name, library in inspection["libraries"].items():
        provider, digest = inspection["providers"].get(name), shortened(str(library["sha256"]))
        found[f"library {name}"] = f"{provider} ({digest})" if provider else digest
    return {what: text(value) for what, value in found.items()}


def cpu_name(fingerprint: Mapping[str, object]) -> str:
    """Return the processor's name with the numbers that tell its kind, if the kernel gives them."""
    numbers = fingerprint["cpu_numbers"]
    return f"{fingerprint['cpu_model']} ({numbers})" if numbers else str(fingerprint["cpu_model"])


def machine_kind(inspection: Inspection) -> MachineKind:
    """Return what decides whether a profile that won there may help on another machine: its CPU, and how many."""
    return {"cpu": cpu_name(inspection["fingerprint"]), "usable_cpus": int(inspection["facts"]["usable_cpus"])}


def gpu_names(inspection: Inspection) -> str:
    """The names of the GPUs that were seen, each with how many there are of it; empty if absent."""
    devices = (inspection.get("accelerator") or {}).get("devices", [])
    counted = Counter(str(device["name"]) for device in devices)
    return " and ".join(name if count == 1 else f"{count} {name}" for name, count in counted.items())


def text(value: object) -> str | None:
    """A recorded value as reports have it."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return None if value is None else str(value)


def shortened(digest: str) -> str:
    return f"{digest[:SHOWN_OF_DIGEST]}…"
