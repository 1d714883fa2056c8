"""Starts the real worker on a request, or on a command of somebody's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from envkit.engines.base import WORKER
from envkit.worker.libraries import locate, search_folders
from envkit.worker.request import RunCommand, UserCommand, WorkerRequest

from tests.simulation import PROJECT

# To digest the files of all libraries takes a tenth of a second.
installed = cache(lambda: locate(search_folders()))
OF_COMMAND = frozenset(one.name for one in fields(UserCommand))


def of_command(folder: Path, *, argv: Sequence[object], **how: Any) -> subprocess.CompletedProcess[str]:
    """What the worker printed and how it ended; ``how`` are fields of what it is asked to do."""
    return of(command(folder, argv, **how))


def command(folder: object, argv: Sequence[object], **how: Any) -> RunCommand:
    """The request to run a command in its folder; ``how`` are fields of the command, or of the request."""
    own = {"in_place": True, **{name: value for name, value in how.items() if name in OF_COMMAND}}
    others = {name: value for name, value in how.items() if name not in OF_COMMAND}
    return RunCommand(UserCommand(tuple(map(str, argv)), str(folder), **own), **others)


def document_of(work: Any) -> Any:
    """The part of a request that says what to do, as simulated workers note it."""
    return WorkerRequest(work).to_json()["work"]


def trains(process: Path, kind: str, steps: object) -> bool:
    """Whether a process of /proc is a worker of this kind whose launcher wrote a request for so many steps."""
    request = Path(os.fsdecode(process.joinpath("cmdline").read_bytes()).rstrip("\0").rpartition("\0")[2])
    if request.name != "request.json" or not request.is_file():
        return False
    work = json.loads(request.read_text())["work"]
    return bool(work["kind"] == kind and work["training"]["steps"] == int(str(steps)))


def of(
    work: Any, argv: Sequence[str] = (sys.executable, str(WORKER)), **variables: str
) -> subprocess.CompletedProcess[str]:
    """What the worker printed that is to do this, and how it ended; it has these ``variables`` besides."""
    return subprocess.run(
        [*argv, "-"], cwd=PROJECT, env={**os.environ, **variables}, input=WorkerRequest(work).line(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
