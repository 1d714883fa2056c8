"""Describe the inside of an image without importing torch: facts, fingerprint, packages and libraries."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from envkit.worker import gpus
from envkit.worker.cgroup import is_seen, memory_limit
from envkit.worker.host import cpu_facts, fingerprint
from envkit.worker.image.contents import contents
from envkit.worker.libraries import locate, packages, search_folders
from envkit.worker.readings import text_of

# Packages whose version can change a timing.
PACKAGES = tuple(dict.fromkeys(["torch", "numpy", *packages("pypi")]))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _providers(file: Path) -> dict[str, Any]:
    """Return who provides which library, as images/install.sh wrote it down; nothing if that was damaged since."""
    try:
        return dict(json.loads(text_of(file))["libraries"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}


def inspect(commands: Sequence[str], with_contents: bool = False, accelerators: bool = False) -> dict[str, Any]:
    """The document that ``python -m envkit.worker inspect`` prints; ``commands`` are looked for on the PATH.

    ``with_contents`` adds all packages that are there, which takes longer. GPUs are looked for, and are a fact, only
    with ``accelerators``: they are no matter to training on CPUs.
    """
    unverified = Path(sys.prefix) / "unverified.txt"
    providers = Path(sys.prefix) / "providers.json"
    folders = search_folders()
    seen = gpus.look() if accelerators else None
    return {
        "facts": {**cpu_facts(), **({"gpus": seen["usable"]} if seen else {})},
        **({"accelerator": seen} if seen else {}),
        "memory_limit": memory_limit(),
        "groups_seen": is_seen(),
        "fingerprint": fingerprint(),
        "python": {"version": sys.version.split()[0], "executable": sys.executable, "prefix": sys.prefix},
        "packages": {name: _version(name) for name in PACKAGES},
        "unverified_packages": text_of(unverified).split("\n")[0] if unverified.is_file() else None,
        "libraries": locate(folders),
        "library_folders": [str(folder) for folder in folders],
        "package_folders": [folder for folder in sys.path if folder],
        "python_path": os.environ.get("PYTHONPATH"),  # a container's is its image's own
        "providers": _providers(providers) if providers.is_file() else {},
        "commands": {command: shutil.which(command) for command in commands},
        "python_headers": (Path(sysconfig.get_path("include")) / "Python.h").is_file(),
        **({"contents": contents()} if with_contents else {}),
    }
