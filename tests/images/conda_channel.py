"""A small conda channel, made by hand and served on loopback, with real packages of real shared libraries."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.images.faulty_server import served_with

# conda replaces this in files that mention it by the path of the prefix, and pads binary files with zeros.
PLACEHOLDER = "/placeholder" * 20
# Small system libraries that stand for the allocators: real ELF files that load.
STANDS_FOR = {"jemalloc": ("libutil.so.1", "libjemalloc.so.2"), "gperftools": ("libdl.so.2", "libtcmalloc.so.4")}


def make_package(channel: Path, name: str, library: str, file_name: str, depends: list[str]) -> Path:
    """A conda package made by hand: one shared library, and one text file that has the prefix written into it."""
    version = "5.3.0"
    system = Path("/lib/x86_64-linux-gnu") / library
    if not system.exists():
        system = Path("/lib64") / library
    files = {
        f"lib/{file_name}": system.resolve().read_bytes() + PLACEHOLDER.encode() + b"/etc\0",
        f"bin/{name}-config": f"#!/bin/sh\necho {PLACEHOLDER}/lib\n".encode(),
    }
    paths = [
        {
            "_path": path,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(content).hexdigest(),
            "size_in_bytes": len(content),
            "prefix_placeholder": PLACEHOLDER,
            "file_mode": "binary" if path.startswith("lib/") else "text",
        }
        for path, content in files.items()
    ]
    index = {"name": name, "version": version, "build": "h0_0", "build_number": 0, "subdir": "linux-64",
             "arch": "x86_64", "platform": "linux", "depends": depends}  # fmt: skip
    files["info/index.json"] = json.dumps(index).encode()
    files["info/paths.json"] = json.dumps({"paths_version": 1, "paths": paths}).encode()
    files["info/files"] = "".join(f"{entry['_path']}\n" for entry in paths).encode()
    archive = channel / f"linux-64/{name}-{version}-h0_0.tar.bz2"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:bz2") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    return archive


def make_channel(folder: Path) -> Path:
    """Make the channel in ``folder``: the packages that the project asks for, and one that they need."""
    make_package(folder, "libneeded", "libm.so.6", "libneeded.so.1", [])
    for name, (library, file_name) in STANDS_FOR.items():
        make_package(folder, name, library, file_name, ["libneeded", "__glibc >=2.17"])
    index(folder)
    return folder


def index(folder: Path) -> None:
    """Write, or renew, what the channel says it has."""
    import rattler

    asyncio.run(rattler.index.index_fs(folder, force=True))


@contextlib.contextmanager
def served(channel: Path) -> Iterator[str]:
    """The channel's address on loopback."""
    with served_with("", channel.parent, "no such file") as address:
        yield f"{address}/{channel.name}"
