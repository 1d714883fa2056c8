"""The options of every command that starts something under an engine: those of ``EngineOptions``, by the same names."""

from __future__ import annotations

import argparse

MEASURED = "local: measure this interpreter; nothing is installed there"


def add(parser: argparse.ArgumentParser, python: str = MEASURED) -> None:
    """``python`` says what the local engine's interpreter is for."""
    group = parser.add_argument_group("engine")
    group.add_argument("--python", metavar="PATH", help=python)
    group.add_argument("--image", metavar="NAME", help="docker, podman: the image (default: envkit-cpu)")
    group.add_argument("--sif", metavar="FILE", help="apptainer: the image (default: build/envkit-cpu.sif)")
    group.add_argument("--cpus", metavar="N", help="containers: CPU time of N CPUs at most, e.g. 1.5")
    group.add_argument("--cpuset-cpus", metavar="LIST", help="containers: these CPUs only, e.g. 0-3,8")
    group.add_argument("--memory", metavar="SIZE", help="containers: at most this much memory, e.g. 4g")
