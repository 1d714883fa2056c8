"""What a bug report needs to know of a machine, as Markdown that is safe to paste.

Only fields that ``templates/issue.txt.j2`` names are printed, libraries by their file names alone. Names of this user,
this host and the home folder are replaced wherever they occur all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

# What a value must look like to be printed: a number, a word, a list of CPUs.
PLAIN = re.compile(r"[\w.,:;=+%-]{1,80}")


def markdown(
    inspection: Mapping[str, Any],
    evidence: Mapping[str, Any],
    variables: Mapping[str, str | None],
    secrets: Mapping[str, str],
) -> str:
    """Return a fenced block.

    ``evidence`` is of a process that trained. ``variables`` are those that can change how fast training runs, with None
    for a value that must not be shown. ``secrets`` are texts to replace, with their replacements.
    """
    environment = Environment(
        loader=PackageLoader("envkit.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(names=_names, gib=_gib)
    accelerator = inspection.get("accelerator") or {}
    block = environment.get_template("issue.txt.j2").render(
        **evidence,
        **{name: inspection[name] for name in ("facts", "packages", "python")},
        seen=inspection["fingerprint"],
        memory_limit=inspection.get("memory_limit"),
        accelerator=accelerator,
        gpus=accelerator.get("devices"),
        chosen=[(name, _shown(name, value)) for name, value in sorted(variables.items())],
    )
    for secret in sorted(secrets, key=len, reverse=True):  # a home folder has the user's name in it
        block = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", secrets[secret], block)
    return f"```text\n{block}```\n"


def _names(paths: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(PurePath(path).name for path in paths if path)


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f}"


def _shown(name: str, value: str | None) -> str | None:
    """Return a value if it says something of speed and nothing of a user; None if it is hidden."""
    if value is None or name != "LD_PRELOAD":
        return value if value and PLAIN.fullmatch(value) else None
    return _names(re.split(r"[ :]+", value))
