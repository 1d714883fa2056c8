"""What to paste so that something else sets a profile. A new format is a function and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envkit.profiles.formats import docker_run, dotenv, jupyter, kubernetes, python, pyxis, shells, vscode
from envkit.profiles.formats.resolved import Resolved


@dataclass(frozen=True)
class Format:
    """What prints a profile, and what must be known of that."""

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
    "shell": Format(shells.shell, 'eval "$(envkit env PROFILE)" in bash, zsh or dash', cleans=True),
    "dotenv": Format(dotenv.dotenv, "a .env file", either=True),
    "docker": Format(docker_run.options, "options of docker run", inside=True),
    "dockerfile": Format(
        docker_run.dockerfile,
        "ENV instructions",
        inside=True,
        starts=True,
        asking=docker_run.ASKING,
        allowing=docker_run.ALLOWING,
    ),
    "apptainer": Format(
        shells.apptainer, "%environment of a definition file", inside=True, starts=True, asking=shells.ASKING
    ),
    "sbatch": Format(shells.sbatch, "a Slurm batch script that runs the command it is given", starts=True),
    "pyxis": Format(
        pyxis.pyxis, "a batch script that runs it in an image, by Slurm's plugin Pyxis", inside=True, starts=True
    ),
    "kubernetes": Format(kubernetes.kubernetes, "a Pod", inside=True, starts=True),
    "vscode": Format(vscode.vscode, ".vscode/settings.json"),
    "jupyter": Format(jupyter.jupyter, "a kernel for Jupyter, kernel.json", starts=True, missing=jupyter.missing),
    "python": Format(python.python, "a notebook's first cell, or the top of a script", missing=python.missing),
}
