"""Resolve a profile on this machine or in an image, for commands that show it or run something under it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envkit.analysis.engine_facts import machine_kind
from envkit.cli import engine_options
from envkit.cli.execution.executables import load_messages
from envkit.cli.parser import Parser
from envkit.common import documents, files
from envkit.common.errors import MISFITS
from envkit.engines.base import Engine
from envkit.engines.inspect_image import inspect
from envkit.messages import Message
from envkit.profiles import catalogue, profile
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import resolve
from envkit.tuning.profile_file import MACHINE, evidence_path


@dataclass(frozen=True)
class ResolvedProfile:
    """A profile, and its environment where an engine starts workers."""

    profile: Profile
    engine: Engine
    inspection: Inspection
    environment: Environment


def add_arguments(parser: Parser) -> None:
    """Add the options of a command that shows a profile."""
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    parser.add_argument("--allow-unknown", action="store_true",
                        help="allow the profile to set variables that no known program reads")  # fmt: skip
    engine_options.add(parser, engine="resolve inside")


def from_options(arguments: argparse.Namespace) -> ResolvedProfile:
    """Resolve the profile inside the engine that the options name. Raise InputError as ``resolve_inside`` does."""
    engine, inherited = engine_options.engine(arguments)
    return resolve_inside(engine, inherited, arguments.profile, arguments.allow_unknown)


def resolve_inside(engine: Engine, inherited: Mapping[str, str], name: str, allow_unknown: bool) -> ResolvedProfile:
    """Resolve the profile ``name`` inside ``engine``, whose workers inherit the variables ``inherited``.

    Raise InputError for an invalid profile, or one that can't be in effect there.
    """
    chosen = profile.load(name)
    inspection = inspect(engine, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    environment = resolve(chosen, inspection)
    catalogue.require(environment, inspection, allow_unknown)
    return ResolvedProfile(chosen, engine, inspection, environment)


def other_machine(name: str, path: Path, inspection: Inspection) -> Message | None:
    """Return the warning for the profile ``name`` in ``path`` if its tuning ran on another kind of machine, else None.

    Only a tuning writes the machine into a file next to its profile.
    """
    try:
        evidence = documents.parse(files.read(evidence_path(path)))[MACHINE]
        won_on = str(evidence["cpu"]), int(evidence["usable_cpus"])
    except (OSError, *MISFITS):
        return None
    here = machine_kind(inspection)
    if won_on == (here["cpu"], here["usable_cpus"]):
        return None
    warning: Message = load_messages().OtherMachine(name, *won_on, here["cpu"], here["usable_cpus"])
    return warning
