"""The options of every command that starts something under an engine: those of ``EngineOptions``, by the same names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from envkit import engines
from envkit.cli import argument_messages
from envkit.cli.argument_messages import MEASURED, START_WORKERS
from envkit.cli.parser import Parser
from envkit.engines.base import IMAGE_FILES, Engine, EngineOptions
from envkit.engines.local import LocalEngine
from envkit.profiles.environment import clean
from envkit.worker.gpus import CHOOSING

OF_COMMAND = argument_messages.OF_COMMAND  # for commands that start a command of the user's


def add(parser: Parser, python: str = MEASURED, engine: str | None = START_WORKERS) -> None:
    """Add the options; ``python`` says what the local engine's interpreter is for, and ``engine`` what --engine does.

    None: the command has no such option, or another one.
    """
    group = parser.add_argument_group("engine")
    if engine is not None:
        group.add_argument("--engine", help=f"{engine}: {', '.join(engines.ENGINES)} (default: local)")
    group.add_argument("--python", metavar="PATH", help=python)
    group.add_argument(
        "--image", metavar="NAME", help=f"{engines.taking('image')}: use this image (default: envkit-cpu)"
    )
    for option, engines_taking, default in (("--sif", "apptainer", "build/envkit-cpu.sif"),
                                    ("--sqsh", "enroot", "build/envkit-cpu.sqsh")):  # fmt: skip
        group.add_argument(option, metavar="FILE", advanced=True,
                           help=f"{engines_taking}: use this image (default: {default})")  # fmt: skip
    group.add_argument("--cpus", metavar="N", advanced=True, help="containers: limit CPU time to N CPUs, e.g. 1.5")
    group.add_argument("--cpuset-cpus", metavar="LIST", advanced=True, help="containers: use these CPUs, e.g. 0-3,8")
    group.add_argument("--memory", metavar="SIZE", advanced=True, help="containers: limit memory to SIZE, e.g. 4g")


def from_arguments(arguments: argparse.Namespace) -> EngineOptions:
    """Return the options of engines on the command line, with absolute paths."""
    options = {name: getattr(arguments, name) for name in EngineOptions.names()}
    for name in ("python", *IMAGE_FILES):  # workers start elsewhere, and a run may be resumed from elsewhere
        # an interpreter's name without a slash is looked for in PATH
        if options[name] and (name in IMAGE_FILES or os.sep in options[name]):
            options[name] = str(Path.cwd() / options[name])  # not resolved: an environment's interpreter is a link
    return EngineOptions(**options)


def engine(arguments: argparse.Namespace, command: Sequence[str] = ()) -> tuple[Engine, dict[str, str]]:
    """Return the engine of --engine (or local), ready to run, and the variables that its worker inherits.

    On this machine it looks into the Python that ``command`` starts, unless --python names one. Raise InputError.
    """
    name = arguments.engine or "local"
    inherited, _ = clean(os.environ, keep=CHOOSING)
    chosen = engines.get_all([name], from_arguments(arguments))[name]
    return chosen.for_command(command) if command and isinstance(chosen, LocalEngine) else chosen, inherited
