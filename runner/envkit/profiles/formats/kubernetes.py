"""A Pod for Kubernetes. Its container's ``env``, ``command`` and ``resources`` fit into every other kind's template."""

from __future__ import annotations

import re

import yaml

from envkit import rendering
from envkit.profiles.environment import capabilities
from envkit.profiles.formats.messages import AllowIn
from envkit.profiles.formats.resolved import Resolved, one_line

IMAGE = "your-image"
COMMAND = ("python", "train.py")
LONGEST_NAME = 63  # of an RFC 1123 label


def kubernetes(resolved: Resolved) -> str:
    """The Pod, as YAML with comments. It may use the CPUs that the profile was resolved for, and no more.

    It has as many GPUs as the profile needs: https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/

    Kubernetes replaces ``$(NAME)`` in values and commands, and takes ``$$`` for ``$``:
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#environment-variables
    """
    environment = resolved.environment
    command = ", ".join(_literal(word) for word in (*environment.prefix, *COMMAND))
    text = resolved.comments(starts=True) + (
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata:\n"
        f"  name: {_text(_label(environment.profile))}\n"
        "spec:\n"
        "  restartPolicy: Never\n"
        "  containers:\n"
        "    - name: training\n"
        f"      image: {_text(resolved.image or IMAGE)}\n"
        f"      command: [{command}]\n"
        "      resources:\n"
        "        limits:\n"
        f'          cpu: "{resolved.usable_cpus}"\n'
    )
    if environment.gpus:
        text += f'          nvidia.com/gpu: "{environment.gpus}"\n'
    if allowed := capabilities(environment.prefix):
        why = rendering.text(AllowIn(environment.prefix[0]))
        text += f"      securityContext:  # {one_line(why)}\n"
        text += f"        capabilities:\n          add: [{', '.join(map(_text, allowed))}]\n"
    if not environment.variables:
        return text
    text += "      env:\n"
    for name, value in environment.variables.items():
        text += f"        - name: {name}\n          value: {_literal(value)}\n"
    return text


def _literal(value: str) -> str:
    """A text that Kubernetes leaves as it is."""
    return _text(value.replace("$", "$$"))


def _text(value: str) -> str:
    """A YAML text on one line; always quoted, as what counts as a number or a boolean differs among YAML readers."""
    dumped: str = yaml.safe_dump(value, default_style='"', width=float("inf"), allow_unicode=True)
    return dumped.rstrip("\n")


def _label(profile: str) -> str:
    label = re.sub(r"[^a-z0-9]+", "-", f"envkit-{profile}".lower())
    return label[:LONGEST_NAME].strip("-")
