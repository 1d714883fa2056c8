"""Starts the real worker on a command of somebody's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from envkit.engines.base import WORKER

from tests.simulation import PROJECT


def of_command(folder: Path, *words: object, argv: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """What the worker printed and how it ended; ``words`` are its options."""
    given = ["command", "--folder", folder, "--in-place", *words, "--", *argv]
    return subprocess.run(
        [sys.executable, str(WORKER), *map(str, given)], cwd=PROJECT, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
