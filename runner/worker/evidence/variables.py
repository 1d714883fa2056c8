"""The environment variables that the worker was really given, and which of its preloads were mapped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from runner.worker.evidence.symbols import mapped_files
from runner.worker.sensitive import is_sensitive


def probe() -> dict[str, Any]:
    """``preloaded`` holds, for each entry of LD_PRELOAD, whether that very file is mapped.

    The variables are those that the process was started with: torch adds some of its own to ``os.environ``.
    """
    block = Path("/proc/self/environ").read_bytes().decode(errors="surrogateescape")
    given = dict(entry.split("=", 1) for entry in block.split("\0") if "=" in entry)
    mapped = {os.path.realpath(path) for path in mapped_files()}
    entries = [entry for entry in given.get("LD_PRELOAD", "").replace(" ", ":").split(":") if entry]
    return {
        "sensitive": {name: value for name, value in sorted(given.items()) if is_sensitive(name)},
        "preloaded": {entry: os.path.realpath(entry) in mapped for entry in entries},
    }
