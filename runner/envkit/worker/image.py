"""Describe the inside of an image without importing torch: facts, fingerprint, packages and libraries.

To compare two images, all that is installed is listed too: packages of Python, conda and the system, and PyTorch's
build.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from envkit.worker import gpus
from envkit.worker.cgroup import is_seen, memory_limit
from envkit.worker.host import cpu_facts, cpu_list, fingerprint, usable_cpus
from envkit.worker.libraries import locate, packages, search_folders
from envkit.worker.readings import text_of

# Packages whose version can change a timing.
PACKAGES = tuple(dict.fromkeys(["torch", "numpy", *packages("pypi")]))
# Of torch/version.py: the commit it was built from, what for, and whether with its own checks.
BUILD = ("git_version", "cuda", "hip", "debug")


def inspect(commands: Sequence[str], with_contents: bool = False, accelerators: bool = False) -> dict[str, object]:
    """Return the worker's reply to an Inspect request; ``commands`` are looked for on the PATH.

    ``with_contents`` adds all packages that are there, which takes longer. GPUs are looked for, and are a fact, only
    with ``accelerators``: they are no matter to training on CPUs.
    """
    unverified = Path(sys.prefix) / "unverified.txt"
    providers = Path(sys.prefix) / "providers.json"
    folders = search_folders()
    accelerator = gpus.look() if accelerators else None
    return {
        "facts": {**cpu_facts(), **({"gpus": accelerator["usable"]} if accelerator else {})},
        "cpus": cpu_list(usable_cpus()),
        **({"accelerator": accelerator} if accelerator else {}),
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


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _providers(file: Path) -> dict[str, object]:
    """Return who provides which library, as images/install.sh wrote it down; nothing if that was damaged since."""
    try:
        return dict(json.loads(text_of(file))["libraries"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}


def contents() -> dict[str, dict[str, str]]:
    """Return versions by name, in four parts, which may be empty."""
    return {
        "torch": torch_build(),
        "python": python_packages(),
        "conda": conda_packages(Path(sys.prefix)),
        "system": system_packages(Path("/")),
    }


def torch_build() -> dict[str, str]:
    """Return what PyTorch says of its build, in a file that can be read without importing all of it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return {}
    file = Path(spec.origin).with_name("version.py")
    if not file.is_file():
        return {}
    names = runpy.run_path(str(file))
    return {name: str(names[name]) for name in BUILD if names.get(name) is not None}


def python_packages() -> dict[str, str]:
    """Return those that an import would find, by their names in the spelling of PEP 503."""
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # what is left of a package that was removed has none
            versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return dict(sorted(versions.items()))


def conda_packages(prefix: Path) -> dict[str, str]:
    """Return version and build of each package in ``prefix``, and in the environment inside it that has libraries."""
    builds = {}
    for folder in (prefix, prefix / "conda"):
        for file in sorted(folder.glob("conda-meta/*.json")):
            try:
                record = json.loads(file.read_text())
                builds[str(record["name"])] = f"{record['version']} {record['build']}"
            except (OSError, ValueError, LookupError, TypeError, RecursionError):
                continue  # conda itself could not read that
    return builds


def system_packages(root: Path) -> dict[str, str]:
    """Return Debian's, by dpkg's list of them (dpkg(1), "FILES"); other systems' are not known."""
    versions = {}
    for paragraph in text_of(root / "var/lib/dpkg/status").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Z][A-Za-z-]*: ", line))
        if fields.get("Status", "").endswith(" installed"):
            versions[fields["Package"]] = fields["Version"]
    return versions
