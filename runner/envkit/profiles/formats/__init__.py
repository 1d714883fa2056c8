"""Texts to paste so that another tool sets a profile. A new format is a function and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envkit.profiles.formats import docker_run, dotenv, jupyter, kubernetes, python, pyxis, shells, vscode
from envkit.profiles.formats.messages import USES
from envkit.profiles.formats.resolved import Resolved


@dataclass(frozen=True)
class Format:
    """A printer of a profile, and its properties."""

    render: Callable[[Resolved], str]
    use: str  # for the help
    inside: bool = False  # it is for a container, so that paths must be those in an image
    starts: bool = False  # it starts commands with the profile's prefix itself
    asking: str = ""  # how what is pasted gets the machine's GPUs, where it does not ask for them itself
    allowing: str = ""  # how it gets the capabilities that the prefix needs
    cleans: bool = False  # it takes away what the shell has that it is printed in (``Resolved.stray``)
    either: bool = False  # containers read it as well as programs of this machine
    missing: Callable[[Resolved], list[str]] = lambda resolved: []  # notes on what a profile needs beside it


FORMATS = {
    "shell": Format(shells.shell, USES["shell"], cleans=True),
    "dotenv": Format(dotenv.dotenv, USES["dotenv"], either=True),
    "docker": Format(docker_run.options, USES["docker"], inside=True),
    "dockerfile": Format(
        docker_run.dockerfile,
        USES["dockerfile"],
        inside=True,
        starts=True,
        asking=docker_run.ASKING,
        allowing=docker_run.ALLOWING,
    ),
    "apptainer": Format(shells.apptainer, USES["apptainer"], inside=True, starts=True, asking=shells.ASKING),
    "sbatch": Format(shells.sbatch, USES["sbatch"], starts=True),
    "pyxis": Format(pyxis.pyxis, USES["pyxis"], inside=True, starts=True),
    "kubernetes": Format(kubernetes.kubernetes, USES["kubernetes"], inside=True, starts=True),
    "vscode": Format(vscode.vscode, USES["vscode"]),
    "jupyter": Format(jupyter.jupyter, USES["jupyter"], starts=True, missing=jupyter.missing),
    "python": Format(python.python, USES["python"], missing=python.missing),
}
