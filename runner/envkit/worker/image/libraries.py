"""Where the libraries that a profile can preload are, by logical name, as seen from inside the image."""

from __future__ import annotations

import hashlib
import platform
import site
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Logical name -> file names, the preferred one first.
FILE_NAMES: dict[str, tuple[str, ...]] = {
    "intel-openmp": ("libiomp5.so",),
    "llvm-openmp": ("libomp.so", "libomp.so.5"),
    "jemalloc": ("libjemalloc.so.2",),
    "tcmalloc": ("libtcmalloc.so.4", "libtcmalloc_minimal.so.4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"),
    "mkl-dispatch": ("libmkl-dispatch.so",),
    "flush-to-zero": ("libflush-to-zero.so",),
}


def search_folders() -> list[Path]:
    """Folders in the order they are searched: the interpreter's own environment, what ``pip --user`` installs, the
    environment that a virtual one was made of, the system's, then the kit's own.
    """
    machine = platform.machine()
    users = [Path(site.getuserbase()) / "lib"] if site.ENABLE_USER_SITE else []
    made_of = [] if sys.base_prefix in (sys.prefix, "/usr", "/usr/local") else [Path(sys.base_prefix) / "lib"]
    return [
        Path(sys.prefix) / "lib",
        Path(sys.prefix) / "conda/lib",
        *users,
        *made_of,
        Path("/usr/local/lib"),
        Path(f"/usr/lib/{machine}-linux-gnu"),
        Path("/usr/lib64"),
        Path("/usr/lib"),
        *sorted(Path("/usr/lib").glob("llvm-*/lib")),
        Path(__file__).resolve().parents[1] / "preloads" / machine,
    ]


def locate(folders: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Logical name -> ``{"path", "sha256", "others"}`` of each library that was found.

    ``others`` are files that are called the same, further down the search, and have another content.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, file_names in FILE_NAMES.items():
        candidates = [folder / file_name for file_name in file_names for folder in folders]
        paths = [candidate for candidate in candidates if candidate.is_file()]
        if name == "intel-openmp":  # LLVM's calls itself that too, by a link, for programs that were built for Intel's
            paths = [path for path in paths if not path.resolve().name.startswith("libomp")]
        if paths:
            digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
            mine = digests[paths[0]]
            others = [str(path) for path in paths if digests[path] != mine and path.name == paths[0].name]
            found[name] = {"path": str(paths[0]), "sha256": mine, "others": others}
    return found
