"""The environment variables that the worker was really given, and which of its preloads were mapped."""

from __future__ import annotations

import os
import re
from typing import Any

from envkit.worker import initial_environment
from envkit.worker.evidence.capture import NOTHING, run_child
from envkit.worker.evidence.symbols import mapped_files
from envkit.worker.performance_variables import is_performance_variable, preloaded

# What ld.so prints, for example: object '/x' from LD_PRELOAD cannot be preloaded (invalid ELF header): ignored.
IGNORED = re.compile(r"from LD_PRELOAD cannot be preloaded \((.*)\): ignored")


def probe() -> dict[str, Any]:
    """``preloaded`` holds, for each entry of LD_PRELOAD, ``mapped`` if that very file is, or else the loader's reason.

    The variables are those that the process was started with: torch and programs change ``os.environ``. ``named``
    are others that ENVKIT_NAMES asks for; None is one that is not set. ``changed`` are those that can change the
    outcome and that the program itself has changed since (``initial_environment.changed``).
    """
    given = initial_environment.own()
    mapped = {os.path.realpath(path) for path in mapped_files()}
    entries = preloaded(given.get("LD_PRELOAD", ""))
    asked = given.get("ENVKIT_NAMES", "").split()
    changed = {name: values for name, values in initial_environment.changed().items() if is_performance_variable(name)}
    return {
        "sensitive": {name: value for name, value in sorted(given.items()) if is_performance_variable(name)},
        **({"named": {name: given.get(name) for name in asked}} if asked else {}),
        **({"changed": changed} if changed else {}),
        "preloaded": {entry: "mapped" if os.path.realpath(entry) in mapped else _why_not(entry) for entry in entries},
    }


def _why_not(entry: str) -> str:
    """The loader's words for a file that it does not preload, from a child that is asked to preload it alone."""
    match = IGNORED.search(run_child(NOTHING, {"LD_PRELOAD": entry}).stderr)
    return f"not mapped: {match.group(1)}" if match else "not mapped"
