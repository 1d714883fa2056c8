"""A kernel for Jupyter: ``kernel.json``, for a folder of its own among those of kernels.

Keys, and what is replaced in them: https://jupyter-client.readthedocs.io/en/stable/kernels.html#kernel-specs and
https://github.com/jupyter/enhancement-proposals/blob/master/kernelspec-spec/kernelspec.schema.json
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from envkit import rendering
from envkit.profiles.formats.messages import JupyterFromShell, NoKernel, Replaced, TakeOut
from envkit.profiles.formats.resolved import Resolved, kernel_name, one_line, refuse

LAUNCHER = "ipykernel_launcher"
# In a variable Jupyter replaces $NAME and ${NAME}, and takes $$ for $; earlier versions replace nothing.
IN_VARIABLES = re.compile(r"\$")
# In a word it replaces the names that it knows, and leaves others: which these are depends on the version.
IN_WORDS = re.compile(r"\{[A-Za-z0-9_]+\}")


def jupyter(resolved: Resolved) -> str:
    """A JSON object: how a kernel is started, with the profile's prefix before the interpreter, and its variables.

    It is in that interpreter's environment that ipykernel must be. Jupyter's own variables come along, and JSON has no
    comments: what it is for is in ``metadata``.
    """
    environment = resolved.environment
    variables, words = environment.variables, [*environment.prefix, resolved.python]
    refuse(resolved, "jupyter", variables.items(), IN_VARIABLES, Replaced("Jupyter", "'$'"), JupyterFromShell())
    in_words = [("its command", word) for word in words]
    refuse(resolved, "jupyter", in_words, IN_WORDS, Replaced("Jupyter", "'{name}'"), TakeOut())
    kernel = {
        "argv": [*words, "-m", LAUNCHER, "-f", "{connection_file}"],
        "display_name": kernel_name(environment.profile),
        "language": "python",
        "env": variables,
        "metadata": {"debugger": True, "envkit": {"resolved": resolved.heading()}},
    }
    return json.dumps(kernel, indent=4, ensure_ascii=False) + "\n"


def missing(resolved: Resolved) -> list[str]:
    """A note where the interpreter can't start a kernel; nothing where that is inside an image, and not seen."""
    folders = resolved.package_folders
    if not folders or any(Path(folder, f"{LAUNCHER}.py").is_file() for folder in folders):
        return []
    return [one_line(rendering.text(NoKernel(resolved.python)))]
