"""A control group with a memory limit, in which a test's program can run out of memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


class MemoryGroup:
    """A group of version 1 or 2 below the top. It takes root, and a controller that may be used."""

    def __init__(self, name: str, limit: int) -> None:
        is_v1 = (V1 / "memory.limit_in_bytes").exists()
        self.name, self.folder = f"/{name}", (V1 if is_v1 else V2) / name
        try:
            self.folder.mkdir(exist_ok=True)
            (self.folder / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(f"{limit}\n")
        except OSError as error:
            pytest.skip(f"no control group with a memory limit can be made: {error.strerror}")

    def enter(self) -> None:
        """Move this process there, as ``preexec_fn`` of a program that is started."""
        (self.folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
