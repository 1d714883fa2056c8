"""The environment variables that the worker was really given, and which of its preloads were mapped."""

from __future__ import annotations

import os
import re

from envkit.worker import initial_environment
from envkit.worker.evidence.capture import NOTHING, run_child
from envkit.worker.evidence.symbols import mapped_files
from envkit.worker.performance_variables import is_performance_variable, preloaded

# What ld.so prints, for example: object '/x' from LD_PRELOAD cannot be preloaded (invalid ELF header): ignored.
IGNORED = re.compile(r"from LD_PRELOAD cannot be preloaded \((.*)\): ignored")


def probe() -> dict[str, object]:
    """Return the variables and preloads.

    ``preloaded`` holds, for each entry of LD_PRELOAD, ``mapped`` if that very file is, or else the loader's reason.

    The variables are those that the process was started with: torch and programs change ``os.environ``. ``named``
    are others that ENVKIT_NAMES asks for; None is one that is not set. ``changed`` are those that can change the
    outcome and that the program itself has changed since (``initial_environment.changed``).
    """
    started = initial_environment.started_variables()
    mapped = {os.path.realpath(path) for path in mapped_files()}
    entries = preloaded(started.get("LD_PRELOAD", ""))
    requested = started.get("ENVKIT_NAMES", "").split()
    changed = {name: values for name, values in initial_environment.changed().items() if is_performance_variable(name)}
    return {
        "sensitive": {name: value for name, value in sorted(started.items()) if is_performance_variable(name)},
        **({"named": {name: started.get(name) for name in requested}} if requested else {}),
        **({"changed": changed} if changed else {}),
        "preloaded": {entry: "mapped" if os.path.realpath(entry) in mapped else _why_not(entry) for entry in entries},
    }


def _why_not(entry: str) -> str:
    """Return the loader's words for a file that it does not preload, from a child that is asked to preload it alone."""
    match = IGNORED.search(run_child(NOTHING, {"LD_PRELOAD": entry}).stderr)
    return f"not mapped: {match.group(1)}" if match else "not mapped"
