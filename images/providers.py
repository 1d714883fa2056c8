#!/usr/bin/env python3
"""Print, as JSON, which package each library that a profile can preload comes from, and its version.

Runs inside an image (/opt/kit/providers.json is its output) and for the local environment (.venv/providers.json), with
the Python of that environment and nothing beside the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

# Logical name -> file names, and the conda package that has them. The names and the order of the folders are those of
# runner/envkit/worker/image/libraries.py, which is not in an image when this runs.
LIBRARIES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "jemalloc": (("libjemalloc.so.2",), "jemalloc"),
    "tcmalloc": (("libtcmalloc.so.4", "libtcmalloc_minimal.so.4"), "gperftools"),
    "mimalloc": (("libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"), None),
    "llvm-openmp": (("libomp.so", "libomp.so.5"), None),
    "intel-openmp": (("libiomp5.so",), None),
}


def locate(prefix: Path, file_names: tuple[str, ...]) -> Path | None:
    system = Path("/usr/lib")
    folders = [
        prefix / "lib",
        prefix / "conda/lib",
        Path("/usr/local/lib"),
        system / f"{platform.machine()}-linux-gnu",
        Path("/usr/lib64"),
        system,
        *sorted(system.glob("llvm-*/lib")),
    ]
    candidates = (folder / name for name in file_names for folder in folders)
    return next((path for path in candidates if path.is_file()), None)


def provider(prefix: Path, path: Path, conda_package: str | None) -> str:
    """One line that names the package of the library at ``path``."""
    if path.parent == prefix / "conda/lib":
        records = [json.loads(file.read_text()) for file in (prefix / "conda/conda-meta").glob("*.json")]
        for record in records:
            if record["name"] == conda_package:
                channel = record["channel"].rstrip("/").rsplit("/", 1)[-1]
                return f"{channel} {record['name']} {record['version']} {record['build']}"
    if path.parent == prefix / "lib":
        return f"PyPI wheel intel-openmp {metadata.version('intel-openmp')}"
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
    for name, (file_names, conda_package) in LIBRARIES.items():
        path = locate(prefix, file_names)
        if path is not None:
            found[name] = provider(prefix, path, conda_package)
    found["gnu-openmp"] = f"bundled in torch {metadata.version('torch')}"
    return found


def load(prefix: Path) -> None:
    """Preload each library, as a profile does: the loader only warns of one that it cannot load, so look for it."""
    test = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); sys.exit(sys.argv[2] not in open('/proc/self/maps').read())"
    for name, (file_names, _) in LIBRARIES.items():
        path = locate(prefix, file_names)
        if path is None:
            sys.exit(f"images/providers.py: {name} is not here: none of {', '.join(file_names)}")
        result = subprocess.run(
            [sys.executable, "-c", test, path, path.resolve()], env={**os.environ, "LD_PRELOAD": str(path)}, check=False
        )
        if result.returncode != 0:
            sys.exit(f"images/providers.py: {name} does not load: {path}")
        print(f"{name}: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", type=Path, default=Path(sys.prefix), help="the environment (this Python's)")
    parser.add_argument("--load", action="store_true", help="load every library instead, and fail if one is not there")
    arguments = parser.parse_args()
    if arguments.load:
        load(arguments.prefix)
    else:
        print(json.dumps({"libraries": providers(arguments.prefix)}, indent=2))


if __name__ == "__main__":
    main()
