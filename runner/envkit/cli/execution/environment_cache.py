"""Environments that were resolved before, kept in the user's cache, so that ``envkit exec`` starts a command at once.

Looking into an image and checking a profile takes hundreds of milliseconds, and nearly always finds what it found the
last time. What is kept is used only while everything that it was made from is the same: the files of the profile, the
machine, the limits of this process, the interpreter and its packages, the folders with libraries, and the kit itself.

Nothing is imported here that takes long to import.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from envkit import __version__
from envkit.cli.execution.executables import Unusable, find
from envkit.common import user_folders
from envkit.worker.cgroup import cpu_quota

TYPE_CHECKING = False  # as mypy knows it; the module it comes from takes 2 ms to import
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]

CODE = Path(__file__).resolve().parent.parent.parent
CODE_FOLDERS = ("", "common", "profiles", "profiles/variables", "engines", "cli", "cli/execution", "worker")
# The variables that say which GPUs are meant, as envkit.worker.gpus has them, which takes long to import.
CHOOSING = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
# The variables by which an interpreter finds packages.
PYTHONS_OWN = ("PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH", "PYTHONUSERBASE")
# What changed so short a time ago may change again without getting another time (file systems' clocks are coarse).
SETTLED_NS = 2 * 10**9


def question(profile: str, engine: Document, allow_unknown: bool) -> Document:
    """What an environment is kept for; ``engine`` is whatever tells one image or interpreter from another."""
    if profile.endswith((".yaml", ".yml")):
        profile = str(Path.cwd() / profile)
    return {
        "profile": profile,
        "engine": engine,
        "allow_unknown": allow_unknown,
        "node": os.uname().nodename,  # a home folder may be shared by many
        "python": {name: os.environ[name] for name in PYTHONS_OWN if name in os.environ},
        "gpus": {name: os.environ[name] for name in CHOOSING if name in os.environ},
    }


def interpreter(named: str | None) -> Document | None:
    """The local engine's interpreter, by its file and when that changed; None if there is no such file."""
    try:
        path = find(named, os.environ.get("PATH")) if named else sys.executable
    except Unusable:
        return None
    if not path.startswith("/"):  # in another folder it is another one, though it may be a link to the same file
        path = str(Path.cwd() / path)
    about = Path(path).stat()
    return {"name": "local", "path": path, "changed": about.st_mtime_ns, "bytes": about.st_size}


def answer(asked: Document) -> Document | None:
    """The environment that was kept for ``asked``, or None if there is none or anything has changed since."""
    try:
        path = _path(asked)
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():  # another user's could preload anything
                return None
            entry = json.load(file)
        if (
            entry["asked"] == asked
            and entry["machine"] == _machine()
            and all(_text(Path(name)) == text for name, text in entry["files"].items())
            and all(_changed(name) == changed for name, changed in entry["folders"].items())
            and all(Path(library).is_file() for library in entry["libraries"])
            and all(find(command, os.environ.get("PATH")) for command in entry["commands"])
        ):
            environment: Document = entry["environment"]
            return environment
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, Unusable):
        pass  # none, or one that can't be read: it is made again
    return None


class Observed:
    """What an environment is made from, as it is before it is made."""

    def __init__(self, asked: Document, files: Iterable[Path]) -> None:
        self._asked, self._files, self._machine = asked, list(files), _machine()
        self._texts = self._read()

    def _read(self) -> dict[str, str | None]:
        return {str(Path.cwd() / path): _text(path) for path in self._files}

    def keep(self, environment: Document, folders: Iterable[str], local: bool) -> None:
        """Keep ``environment``, unless something changed meanwhile. Where nothing can be written nothing is kept.

        ``folders`` are those in which libraries and packages were looked for; ``local`` is whether what the
        environment names is outside of containers.
        """
        from envkit.common import atomic
        from envkit.common.errors import InputError

        changed = {folder: _changed(folder) for folder in folders}
        machine = _machine()
        newest = max([*(when or 0 for when in changed.values()), *(when for _, when, _ in machine["code"])])
        if time.time_ns() - newest < SETTLED_NS or self._machine != machine or self._texts != self._read():
            return
        entry = {
            "asked": self._asked,
            "machine": machine,
            "files": self._texts,
            "folders": changed,
            "libraries": list(environment["preload"].values()) if local else [],
            "commands": list(environment["prefix"][:1]) if local else [],
            "environment": environment,
        }
        with contextlib.suppress(OSError, InputError, RuntimeError):
            path = _path(self._asked)
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(path, json.dumps(entry).encode())


def _path(asked: Document) -> Path:
    """Two questions that get the same name only take it from each other: an entry says what it is for."""
    return user_folders.cache() / "exec" / f"{binascii.crc32(json.dumps(asked, sort_keys=True).encode()):08x}.json"


def _machine() -> Document:
    """What the facts that profiles refer to depend on, and which state the kit itself is in."""
    nodes = Path("/sys/devices/system/node")
    return {
        "version": __version__,
        "code": _code(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "online": _text(Path("/sys/devices/system/cpu/online")),
        "nodes": sorted(os.listdir(nodes)) if nodes.is_dir() else [],  # noqa: PTH208 - names are all that is needed
        "gpus": sorted(name for name in os.listdir("/dev") if name.startswith("nvidia")),  # noqa: PTH208
        "quota": cpu_quota(),
        "kernel": os.uname().release,
        "boot": _text(Path("/proc/sys/kernel/random/boot_id")),
    }


def _code() -> list[list[Any]]:
    """Name, time of change and size of every file that has a say in what a profile comes to."""
    found = []
    for folder in CODE_FOLDERS:
        with os.scandir(CODE / folder) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".yaml")):
                    about = entry.stat()
                    found.append([f"{folder}/{entry.name}", about.st_mtime_ns, about.st_size])
    return sorted(found)


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return None


def _changed(folder: str) -> int | None:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return None
