"""Resolve a profile by looking into the image, for a command that is to be run under it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envkit.cli.execution.machine_kind import OTHER_MACHINE, difference
from envkit.engines.base import Engine
from envkit.engines.inspect_image import inspect
from envkit.profiles import catalogue, profile
from envkit.profiles.resolve import resolve

PYTHON_PATH = "python_path"


def make(name: str, engine: Engine, inherited: Mapping[str, str], allow_unknown: bool) -> dict[str, Any]:
    """Return the environment of the profile ``name`` as JSON, with PYTHON_PATH if a container's image sets it.

    Raises InputError for a profile that is wrong, or that can't be in effect there.
    """
    chosen = profile.load(name)
    inspection = inspect(engine, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    environment = resolve(chosen, inspection)
    catalogue.require(environment, inspection, allow_unknown)
    document = environment.to_json()
    if (warning := difference(chosen.name, chosen.path, inspection)) is not None:
        document[OTHER_MACHINE] = warning.to_json()
    if engine.name != "local" and (path := inspection.get("python_path")):
        document[PYTHON_PATH] = path
    return document
