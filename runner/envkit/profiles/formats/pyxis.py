"""A batch script for clusters whose Slurm starts containers, by NVIDIA's plugin Pyxis."""

from __future__ import annotations

import re
import shlex

from envkit import rendering
from envkit.profiles.formats.messages import FolderInside, OtherPath
from envkit.profiles.formats.resolved import Resolved
from envkit.profiles.formats.shells import batch_head

IMAGE = "./your-image.sqsh"
# The name of an image that begins with a registry's.
WITH_REGISTRY = re.compile(r"(localhost|[^/]*[.:][^/]*)/(.+)")
# Without these the machine's GPUs are in a container only where the image asks for them.
GPUS = "export NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility\n"
MOUNTS = f'# {rendering.text(FolderInside())}\nmounts="$PWD:$PWD"\n'
LOGIN = f"# {rendering.text(OtherPath())}\nexport ENROOT_LOGIN_SHELL=no\n"


def pyxis(resolved: Resolved) -> str:
    """A batch script that runs the command it is given in the image: ``sbatch FILE python train.py``.

    The job's variables come along, and where the image has one of the same name that counts, unless ``--container-env``
    names it (https://github.com/NVIDIA/pyxis/wiki/Usage). The profile's are set inside, by ``env``: whatever the image
    has, and so that srun itself, which runs on the host, is not told to preload the image's libraries.
    """
    environment = resolved.environment
    image = resolved.sqsh or (_uri(resolved.image) if resolved.image else IMAGE)
    inside = [f"{name}={value}" for name, value in environment.variables.items()]
    words = [
        # srun does not take the number of CPUs from its job by itself
        'exec srun --ntasks=1 --cpus-per-task="$SLURM_CPUS_PER_TASK"',
        f"--container-image={shlex.quote(image)} --no-container-mount-home",
        '--container-mounts="$mounts" --container-workdir="$PWD"',
        shlex.join(["env", *inside]),
        f'{shlex.join(environment.prefix)} "$@"' if environment.prefix else '"$@"',
    ]
    start = " \\\n    ".join(words)
    return batch_head(resolved) + (GPUS if environment.gpus else "") + LOGIN + MOUNTS + f"{start}\n"


def _uri(image: str) -> str:
    """An image's name in Enroot's words, where ``#`` comes after the registry."""
    match = WITH_REGISTRY.fullmatch(image)
    return f"{match[1]}#{match[2]}" if match else image
