#!/usr/bin/env python3
"""Print, as JSON, which package each library that a profile can preload comes from, and its version.

Runs inside an image (/opt/kit/providers.json is its output) and for the local environment (.venv/providers.json), with
the Python of that environment and nothing beside the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The registry lies beside this file in an image; nothing is to be written there.
sys.path.append(str(HERE.parent / "runner/envkit/worker"))
sys.dont_write_bytecode = True

from libraries import IN_WHEELS, LIBRARIES, Library, paths, search_folders  # noqa: E402

INSTALLED = {name: library for name, library in LIBRARIES.items() if library.in_images}
SOURCES = ("conda", "debian")


def packages(source: str) -> list[str]:
    """Return the packages of ``source`` (debian or conda) that bring libraries into an image."""
    return [library.packages[source] for library in INSTALLED.values() if source in library.packages]


def of_debian(source: str) -> list[str]:
    """Return Debian's packages for an image whose allocators are from ``source``: conda's are not among them."""
    known = [library.packages for library in INSTALLED.values() if "debian" in library.packages]
    loaded = [package for library in INSTALLED.values() for package in library.loads.values()]
    return [one["debian"] for one in known if source == "debian" or source not in one] + loaded


def locate(name: str) -> Path | None:
    return next(iter(paths(name, search_folders())), None)


def provider(prefix: Path, path: Path, library: Library) -> str:
    """One line that names the package of the library at ``path``."""
    if path.parent == prefix / "conda/lib":
        records = [json.loads(file.read_text()) for file in (prefix / "conda/conda-meta").glob("*.json")]
        for record in records:
            if record["name"] == library.packages.get("conda"):
                channel = record["channel"].rstrip("/").rsplit("/", 1)[-1]
                return f"{channel} {record['name']} {record['version']} {record['build']}"
    if "pypi" in library.packages and (path.parent == prefix / "lib" or path.match(f"{IN_WHEELS}/*")):
        wheel = library.packages["pypi"]
        return f"PyPI wheel {wheel} {metadata.version(wheel)}"
    if shutil.which("dpkg-query"):
        owner = subprocess.run(["dpkg-query", "--search", path.resolve()], capture_output=True, text=True, check=False)
        if owner.returncode == 0:
            package = owner.stdout.split(":")[0]
            version = subprocess.run(
                ["dpkg-query", "--show", "--showformat", "${Version}", package],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            return f"Debian {package} {version}"
    return f"file {path}"


def providers(prefix: Path) -> dict[str, str]:
    found = {}
    for name, library in INSTALLED.items():
        path = locate(name)
        if path is not None:
            found[name] = provider(prefix, path, library)
    found["gnu-openmp"] = f"bundled in torch {metadata.version('torch')}"
    return found


def load() -> None:
    """Preload each library, as a profile does: the loader only warns of one that it cannot load, so look for it."""
    test = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); sys.exit(sys.argv[2] not in open('/proc/self/maps').read())"
    for name, library in INSTALLED.items():
        path = locate(name)
        if path is None:
            sys.exit(f"images/providers.py: {name} is not here: none of {', '.join(library.files)}")
        result = subprocess.run(
            [sys.executable, "-c", test, path, path.resolve()], env={**os.environ, "LD_PRELOAD": str(path)}, check=False
        )
        if result.returncode != 0:
            sys.exit(f"images/providers.py: {name} does not load: {path}")
        print(f"{name}: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", action="store_true", help="load every library instead, and fail if one is not there")
    parser.add_argument("--debian", choices=SOURCES, help="print Debian's packages instead, for allocators from there")
    arguments = parser.parse_args()
    if arguments.load:
        load()
    elif arguments.debian:
        print(*of_debian(arguments.debian))
    else:
        print(json.dumps({"libraries": providers(Path(sys.prefix))}, indent=2))


if __name__ == "__main__":
    main()
