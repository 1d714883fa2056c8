"""Resolve a profile the long way, by looking into the image, and keep what it comes to."""

from __future__ import annotations

import argparse
import os
from typing import Any

from runner import catalogue, engines, profile
from runner.commands.measuring import engine_options
from runner.engines.base import Engine
from runner.environment import clean
from runner.execution import kept
from runner.inspect_image import inspect
from runner.resolve import resolve
from runner.worker.gpus import CHOOSING


def engine(arguments: argparse.Namespace) -> Engine:
    """The engine that was asked for, ready to run. Raises InputError."""
    name = arguments.engine or "local"
    return engines.get_all([name], engine_options(arguments))[name]


def make(arguments: argparse.Namespace, used: Engine, asked: kept.Document) -> dict[str, Any]:
    """The environment as JSON. Raises InputError for a profile that is wrong, or that can't be in effect there."""
    chosen = profile.load(arguments.profile)
    observed = kept.Observed(asked, profile.looked_for(arguments.profile))
    chosen = profile.load(arguments.profile)
    inherited, _ = clean(os.environ, keep=CHOOSING)
    inspection = inspect(used, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    environment = resolve(chosen, inspection)
    catalogue.require(environment, inspection, arguments.allow_unknown)
    local = used.name == "local"
    folders = [*inspection["library_folders"], *inspection.get("package_folders", ())] if local else []
    document = environment.to_json()
    observed.keep(document, folders, local)
    return document
