"""All that is installed in an image, to compare two: packages of Python, conda and the system, and PyTorch's build."""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import sys
from importlib import metadata
from pathlib import Path

from envkit.worker.readings import text_of

# Of torch/version.py: the commit it was built from, what for, and whether with its own checks.
BUILD = ("git_version", "cuda", "hip", "debug")


def contents() -> dict[str, dict[str, str]]:
    """Versions by name, in four parts, which may be empty."""
    return {
        "torch": torch_build(),
        "python": python_packages(),
        "conda": conda_packages(Path(sys.prefix)),
        "system": system_packages(Path("/")),
    }


def torch_build() -> dict[str, str]:
    """Return what PyTorch says of its build, in a file that can be read without importing all of it."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    file = Path(found.origin).with_name("version.py")
    if not file.is_file():
        return {}
    said = runpy.run_path(str(file))
    return {name: str(said[name]) for name in BUILD if said.get(name) is not None}


def python_packages() -> dict[str, str]:
    """Return those that an import would find, by their names in the spelling of PEP 503."""
    found: dict[str, str] = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name:  # what is left of a package that was removed has none
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), one.version)
    return dict(sorted(found.items()))


def conda_packages(prefix: Path) -> dict[str, str]:
    """Version and build of each package of the environment ``prefix``, and of the one inside it that has libraries."""
    found = {}
    for folder in (prefix, prefix / "conda"):
        for file in sorted(folder.glob("conda-meta/*.json")):
            record = json.loads(file.read_text())
            found[str(record["name"])] = f"{record['version']} {record['build']}"
    return found


def system_packages(root: Path) -> dict[str, str]:
    """Debian's, by dpkg's list of them (dpkg(1), "FILES"); other systems' are not known."""
    found = {}
    for paragraph in text_of(root / "var/lib/dpkg/status").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Z][A-Za-z-]*: ", line))
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return found
