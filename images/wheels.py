#!/usr/bin/env python3
"""Hold a folder of wheels against the lock files, for the Python and platform of the image.

The markers in a lock file are evaluated for the image, which pip cannot do: it takes the Python that it runs under.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

try:
    from packaging.requirements import Requirement
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
except ImportError:
    print(
        "images/wheels.py: this Python has no package 'packaging': run make dev and use .venv/bin/python",
        file=sys.stderr,
    )
    sys.exit(2)

# Debian bookworm's Python, whatever the host has.
IMAGE = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.2",
    "python_version": "3.11",
    "sys_platform": "linux",
}


@dataclass(frozen=True)
class Locked:
    """One package of a lock file: its line for pip, and the SHA-256 that its files may have."""

    name: str
    version: str
    hashes: frozenset[str]
    lock: Path

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    def line(self) -> str:
        return " ".join([str(self), *(f"--hash=sha256:{value}" for value in sorted(self.hashes))])


class WheelhouseError(Exception):
    """One line for the user."""


def read_lock(lock: Path) -> list[Locked]:
    """The packages of ``lock`` that the image needs."""
    packages = []
    for line in lock.read_text().replace("\\\n", " ").splitlines():
        text = line.split(" --hash=")[0].strip()
        if not text or text.startswith("#"):
            continue
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate(IMAGE):
            continue
        hashes = frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
        packages.append(
            Locked(canonicalize_name(requirement.name), str(requirement.specifier).removeprefix("=="), hashes, lock)
        )
    return packages


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        # not hashlib.file_digest: it came with Python 3.11, and the host may have 3.10
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def verified(folder: Path, packages: list[Locked]) -> dict[Locked, tuple[str, str]]:
    """Name and SHA-256 of the wheel of each package that ``folder`` has.

    Raises WheelhouseError if one is not the file that was locked.

    Wheels of other packages and versions are left from an earlier lock and do no harm.
    """
    by_name = {(package.name, package.version): package for package in packages}
    found = {}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, *_ = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        package = by_name.get((name, str(version)))
        if package is None:
            continue
        actual = sha256(path)
        if actual not in package.hashes:
            raise WheelhouseError(f"{path}: its SHA-256 {actual} is not in {package.lock}: remove it and try again")
        found[package] = (path.name, actual)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    about = "print what the folder lacks, as lines for pip, or the SHA-256 and name of every file that the image needs"
    parser.add_argument("command", choices=("missing", "manifest"), help=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("lock", type=Path, nargs="+")
    arguments = parser.parse_args()
    packages = [package for lock in arguments.lock for package in read_lock(lock)]
    try:
        found = verified(arguments.folder, packages)
        missing = [package for package in packages if package not in found]
        if arguments.command == "missing":
            lines = [package.line() for package in missing]
        elif missing:
            raise WheelhouseError(
                f"{arguments.folder}: has no wheel of {missing[0]} for Python {IMAGE['python_version']}: "
                f"run images/wheelhouse {arguments.folder}"
            )
        else:
            lines = [f"{digest}  {name}" for name, digest in sorted(found.values())]
    except WheelhouseError as error:
        print(f"images/wheels.py: {error}", file=sys.stderr)
        return 2
    print("".join(f"{line}\n" for line in lines), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
