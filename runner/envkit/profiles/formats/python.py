"""Python for a notebook's first cell, or the beginning of a script: it sets what can still be set there."""

from __future__ import annotations

import json

from envkit import rendering
from envkit.profiles.formats.messages import FOR_CHECK, TOO_LATE, ReadAtStart
from envkit.profiles.formats.resolved import Resolved
from envkit.worker.libraries import prefixes

# How the names begin of what is read when a process starts: by the loader and libraries that are there from the
# beginning (glibc, and allocators, which have to be preloaded), and by Python. Others are read when torch is imported,
# or later. A test holds this against who reads what in the catalogue.
AT_START = ("LD_", "MALLOC_", "PYTHON", *prefixes(["allocator"]))
# The variable in which the printed text leaves the names of those that it has set: it refuses to come after torch.
BEFORE_TORCH = "ENVKIT_BEFORE_TORCH"


def read_at_start(name: str) -> bool:
    """Return whether a variable does nothing in a process that has started."""
    return name.startswith(AT_START)


def missing(resolved: Resolved) -> list[str]:
    """A note that names what of the profile can't be set in this way."""
    names = [name for name in resolved.environment.variables if read_at_start(name)]
    if not names:
        return []
    return [rendering.text(ReadAtStart(tuple(names)))]


def python(resolved: Resolved) -> str:
    """Statements that set the variables in the process that runs them, or raise RuntimeError where torch is there."""
    settable = {name: value for name, value in resolved.environment.variables.items() if not read_at_start(name)}
    text = resolved.comments() + "".join(f"# {line}\n" for line in missing(resolved))
    text += "import os\nimport sys\n\n"
    text += f'if "torch" in sys.modules:\n    raise RuntimeError({_literal(TOO_LATE)})\n'
    for name, value in settable.items():
        text += f'os.environ["{name}"] = {_literal(value)}\n'
    if settable:
        text += f'os.environ["{BEFORE_TORCH}"] = "{" ".join(settable)}"  # {FOR_CHECK}\n'
    return text


def _literal(value: str) -> str:
    """A text on one line; of printable characters JSON escapes only the two that Python escapes alike."""
    return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
