"""The options of every command that starts something under an engine: those of ``EngineOptions``, by the same names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from envkit import engines
from envkit.engines.base import IMAGE_FILES, Engine, EngineOptions
from envkit.engines.local import LocalEngine
from envkit.profiles.environment import clean
from envkit.worker.gpus import CHOOSING

MEASURED = "local: measure this interpreter; nothing is installed there"


def add(parser: argparse.ArgumentParser, python: str = MEASURED) -> None:
    """``python`` says what the local engine's interpreter is for."""
    group = parser.add_argument_group("engine")
    group.add_argument("--python", metavar="PATH", help=python)
    group.add_argument("--image", metavar="NAME", help="docker, podman: the image (default: envkit-cpu)")
    group.add_argument("--sif", metavar="FILE", help="apptainer: the image (default: build/envkit-cpu.sif)")
    group.add_argument("--sqsh", metavar="FILE", help="enroot: the image (default: build/envkit-cpu.sqsh)")
    group.add_argument("--cpus", metavar="N", help="containers: CPU time of N CPUs at most, e.g. 1.5")
    group.add_argument("--cpuset-cpus", metavar="LIST", help="containers: these CPUs only, e.g. 0-3,8")
    group.add_argument("--memory", metavar="SIZE", help="containers: at most this much memory, e.g. 4g")


def given(arguments: argparse.Namespace) -> EngineOptions:
    found = {name: getattr(arguments, name) for name in EngineOptions.names()}
    for name in ("python", *IMAGE_FILES):  # workers start elsewhere, and a run may be resumed from elsewhere
        if found[name] and (name in IMAGE_FILES or os.sep in found[name]):  # an interpreter's name: looked for in PATH
            found[name] = str(Path.cwd() / found[name])  # not resolved: an environment's interpreter is a link
    return EngineOptions(**found)


def engine(arguments: argparse.Namespace, command: Sequence[str] = ()) -> tuple[Engine, dict[str, str]]:
    """The engine that was asked for (--engine, or local), ready to run, and the variables that its worker inherits.

    On this machine it looks into the Python that ``command`` starts, unless --python names one. Raises InputError.
    """
    name = arguments.engine or "local"
    inherited, _ = clean(os.environ, keep=CHOOSING)
    found = engines.get_all([name], given(arguments))[name]
    return found.for_command(command) if command and isinstance(found, LocalEngine) else found, inherited
