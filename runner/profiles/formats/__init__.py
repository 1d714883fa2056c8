"""What to paste so that something else sets a profile. A new format is a function and a line in FORMATS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runner.profiles.formats import docker_run, dotenv, kubernetes, shells, vscode
from runner.profiles.formats.resolved import Resolved


@dataclass(frozen=True)
class Format:
    """``use`` is shown in the help.

    ``inside``: it is for a container, so that paths must be those in an image. ``starts``: it starts commands with the
    profile's prefix itself. ``asking`` is how what is pasted gets the machine's GPUs, where it does not ask for them
    itself, and ``allowing`` how it gets the capabilities that the prefix needs. ``cleans``: it takes away what the
    shell has that it is printed in (``Resolved.stray``). ``either``: containers read it as well as programs of this
    machine.
    """

    render: Callable[[Resolved], str]
    use: str
    inside: bool = False
    starts: bool = False
    asking: str = ""
    allowing: str = ""
    cleans: bool = False
    either: bool = False


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
    "kubernetes": Format(kubernetes.kubernetes, "a Pod", inside=True, starts=True),
    "vscode": Format(vscode.vscode, ".vscode/settings.json"),
}
