"""Where the libraries that a profile can preload are, by logical name, as seen from inside the image."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

# Logical name -> file names, the preferred one first.
FILE_NAMES: dict[str, tuple[str, ...]] = {
    "intel-openmp": ("libiomp5.so",),
    "llvm-openmp": ("libomp.so", "libomp.so.5"),
    "jemalloc": ("libjemalloc.so.2",),
    "tcmalloc": ("libtcmalloc.so.4", "libtcmalloc_minimal.so.4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc.so"),
}


def search_folders() -> list[Path]:
    """Folders in the order they are searched: the interpreter's own environment, then the system's."""
    machine = platform.machine()
    return [
        Path(sys.prefix) / "lib",
        Path(sys.prefix) / "conda/lib",
        Path("/usr/local/lib"),
        Path(f"/usr/lib/{machine}-linux-gnu"),
        Path("/usr/lib64"),
        Path("/usr/lib"),
        *sorted(Path("/usr/lib").glob("llvm-*/lib")),
    ]


def locate(folders: Sequence[Path]) -> dict[str, dict[str, str]]:
    """Logical name -> ``{"path", "sha256"}`` of each library that was found."""
    found = {}
    for name, file_names in FILE_NAMES.items():
        candidates = (folder / file_name for file_name in file_names for folder in folders)
        path = next((candidate for candidate in candidates if candidate.is_file()), None)
        if path is not None:
            found[name] = {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return found
