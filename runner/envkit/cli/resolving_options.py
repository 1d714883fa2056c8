"""Shared by commands that show a profile here or in an image: their options, and resolving it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from envkit.cli import engine_options
from envkit.cli.parser import Parser
from envkit.engines.base import Engine
from envkit.engines.inspect_image import inspect
from envkit.profiles import catalogue, profile
from envkit.profiles.environment import Environment
from envkit.profiles.inspection import Inspection
from envkit.profiles.profile import Profile
from envkit.profiles.resolve import resolve


@dataclass(frozen=True)
class Looked:
    """A profile, and what it comes to where it was looked at."""

    profile: Profile
    engine: Engine
    inspection: Inspection
    environment: Environment


def add_arguments(parser: Parser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="name of a profile, or a YAML file")
    parser.add_argument("--allow-unknown", action="store_true",
                        help="allow the profile to set variables that no known program reads")  # fmt: skip
    engine_options.add(parser, engine="resolve inside")


def look(arguments: argparse.Namespace) -> Looked:
    """Resolve the profile inside the engine that was asked for. Raises InputError where what it sets does nothing."""
    chosen = profile.load(arguments.profile)
    engine, inherited = engine_options.engine(arguments)
    inspection = inspect(engine, inherited, chosen.prefix[:1], gpus=chosen.on_gpus or None)
    environment = resolve(chosen, inspection)
    catalogue.require(environment, inspection, arguments.allow_unknown)
    return Looked(chosen, engine, inspection, environment)
