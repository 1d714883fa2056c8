"""Resolve a profile the long way, by looking into the image, and keep what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envkit.cli.execution import environment_cache
from envkit.cli.execution.machine_kind import OTHER_MACHINE, difference
from envkit.engines.base import Engine
from envkit.engines.inspect_image import inspect
from envkit.profiles import catalogue, profile
from envkit.profiles.resolve import resolve
from envkit.tuning.profile_file import evidence_path

PYTHON_PATH = "python_path"


def make(
    name: str, engine: Engine, inherited: Mapping[str, str], asked: environment_cache.Document, allow_unknown: bool
) -> dict[str, Any]:
    """The environment of the profile ``name`` as JSON, with PYTHON_PATH as a container's image has it, if it does.

    Raises InputError for a profile that is wrong, or that can't be in effect there.
    """
    profile.load(name)  # refuses a circle of profiles, in which their files would be looked for forever
    looked_for = profile.looked_for(name)
    observed = environment_cache.Observed(asked, [*looked_for, *map(evidence_path, looked_for)])
    chosen = profile.load(name)  # again, as it is now that its files are observed
    inspection = inspect(engine, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    environment = resolve(chosen, inspection)
    catalogue.require(environment, inspection, allow_unknown)
    local = engine.name == "local"
    folders = [*inspection["library_folders"], *inspection.get("package_folders", ())] if local else []
    document = environment.to_json()
    if (warning := difference(chosen.name, chosen.path, inspection)) is not None:
        document[OTHER_MACHINE] = warning.to_json()
    if not local and (path := inspection.get("python_path")):
        document[PYTHON_PATH] = path
    observed.keep(document, folders, local)
    return document
