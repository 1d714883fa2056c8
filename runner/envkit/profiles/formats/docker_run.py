"""Formats for Docker and Podman: options of ``docker run``, and instructions of a Dockerfile."""

from __future__ import annotations

import json
import re
import shlex

from envkit import rendering
from envkit.profiles.environment import capabilities
from envkit.profiles.formats.messages import LINE_BREAK, Has, OtherFormats, RepeatCommand
from envkit.profiles.formats.resolved import Resolved, refuse

# An instruction is one line; what else a builder makes of these depends on the builder.
NOT_IN_DOCKERFILES = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
# How a container of the image is started with GPUs.
ASKING = "docker run --gpus all"
ALLOWING = "docker run --cap-add"
FIX = OtherFormats(("docker",))
ESCAPED = re.compile(r'[\\"$]')


def options(resolved: Resolved) -> str:
    """One line of options, quoted for ``eval "docker run $(envkit env PROFILE --format docker) IMAGE COMMAND"``.

    The limits that the profile was resolved under are among them, the machine's GPUs where it is for some, and what the
    command that you start with its prefix must be allowed.
    """
    variables = resolved.environment.variables.items()
    env_options = [word for name, value in variables for word in ("--env", f"{name}={value}")]
    allowed = [word for name in capabilities(resolved.environment.prefix) for word in ("--cap-add", name)]
    words = [*resolved.asking, *allowed, *resolved.limits, *env_options]
    return shlex.join(words) + "\n"


def dockerfile(resolved: Resolved) -> str:
    r"""``ENV`` instructions, and an ``ENTRYPOINT`` where commands need a prefix.

    Between double quotes ``\``, ``"`` and ``$`` are escaped with ``\``, and all else is itself:
    https://docs.docker.com/reference/dockerfile/#env
    """
    environment = resolved.environment
    refuse(resolved, "dockerfile", environment.variables.items(), NOT_IN_DOCKERFILES, Has(LINE_BREAK), FIX)
    text = resolved.comments(starts=True, asking=ASKING, allowing=ALLOWING)
    for name, value in environment.variables.items():
        text += f'ENV {name}="{ESCAPED.sub(lambda match: chr(92) + match.group(), value)}"\n'
    if environment.prefix:
        text += f"# {rendering.text(RepeatCommand())}\n"
        text += f"ENTRYPOINT {json.dumps(environment.prefix)}\n"
    return text
