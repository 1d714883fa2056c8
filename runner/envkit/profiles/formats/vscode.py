"""Settings of Visual Studio Code, for a workspace's ``.vscode/settings.json``."""

from __future__ import annotations

import json
import re

from envkit.profiles.formats.messages import OtherFormats, Replaced
from envkit.profiles.formats.resolved import Resolved, kernel_name, refuse

REPLACED = re.compile(r"\$\{")
WHY, FIX = Replaced("VS Code", "'${'"), OtherFormats(("dotenv", "shell"))


def vscode(resolved: Resolved) -> str:
    """A JSON object: the variables for new terminals, and for a debug configuration (``launch`` may stand there too).

    It has no comments, as not all that read JSON take them. ``${...}`` is replaced in it and can't be escaped:
    https://code.visualstudio.com/docs/reference/variables-reference
    """
    environment = resolved.environment
    variables = environment.variables
    refuse(resolved, "vscode", variables.items(), REPLACED, WHY, FIX)
    configuration = {
        "name": kernel_name(environment.profile), "type": "debugpy", "request": "launch", "program": "${file}",
        "console": "integratedTerminal", "env": variables,
    }  # fmt: skip
    settings = {
        "terminal.integrated.env.linux": variables,
        "launch": {"version": "0.2.0", "configurations": [configuration]},
    }
    return json.dumps(settings, indent=4, ensure_ascii=False) + "\n"
