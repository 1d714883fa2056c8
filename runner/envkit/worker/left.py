"""Read the documents that a command's processes left in a folder. Any process may have damaged them.

A usable document is a regular file of bounded size, with the keys that the evidence hook writes. Readers of evidence
skip the other documents, and report their number and the reason of the first.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envkit.messages import Message, from_json
from envkit.worker.messages import cpus
from envkit.worker.messages.left import (
    BadJson,
    LinkLeft,
    NotAFile,
    OtherForm,
    SomeUnread,
    TooDeep,
    TooLarge,
    TooMuch,
    Unreadable,
)

# The most bytes of one document, and of all that are read. The hook's documents have about 10,000 bytes.
MOST_BYTES, MOST_IN_ALL = 16 * 2**20, 256 * 2**20
DEEPEST = 32  # levels of brackets, of which evidence has up to 6
PARTS = (
    "openmp",
    "cpu_use",
    "malloc",
    "memory",
    "threads",
    "limits",
    "blas",
    "onednn",
    "mkl",
    "torch",
    "gpu",
    "nccl",
    "variables",
)
CPU_USE = ("pid", "cpus", "cores", "machine_cpus", "machine_cores", "ranks")
TEXTS = ("sensitive", "preloaded")  # of the evidence's variables
LONGEST_PID = 2**31


class _Unusable(Exception):
    def __init__(self, message: Message) -> None:
        super().__init__(message.code)
        self.message = message


@dataclass
class Found:
    """``documents`` are those that can be used. ``unread`` are the names of the others, and ``reason`` of the first."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    reason: Message | None = None

    @property
    def problem(self) -> SomeUnread | None:
        """Name the first unusable document and the number of these, or return None."""
        return SomeUnread(len(self.unread), self.unread[0], self.reason) if self.reason else None

    def leave_out(self, name: str, reason: Message) -> None:
        self.unread.append(name)
        self.reason = self.reason or reason


def read(folder: Path, pattern: str, holds: Callable[[Any], bool]) -> Found:
    """Return the documents in the files of ``folder`` that are called as ``pattern``, if each ``holds``."""
    found, left = Found(), MOST_IN_ALL
    for path in sorted(folder.glob(pattern)):
        try:
            content = _content(path, left)
            left -= len(content)
            document = _parsed(content)
            if not _holds(holds, document):
                raise _Unusable(OtherForm())
        except _Unusable as error:
            found.leave_out(path.name, error.message)
        except OSError as error:
            found.leave_out(path.name, Unreadable(str(error.strerror)))
        else:
            found.documents.append(document)
    return found


def evidence(folder: Path, pattern: str = "*.json") -> Found:
    """Return the evidence that processes left, each document with ``pid``, ``argv`` and ``evidence``."""
    found = read(folder, pattern, is_evidence)
    for one in found.documents:
        one["evidence"] = {"variables": {}, "seconds": 0.0, **one["evidence"]}
    return found


def is_evidence(document: Any) -> bool:
    """Return whether a document has the form of a process's evidence, as far as what reads it relies on that."""
    seen = document["evidence"]
    parts = {name: value for name, value in seen.items() if isinstance(value, dict)}
    variables, threads = parts.get("variables", {}), parts.get("threads", {})
    return (
        _is_pid(document["pid"])
        and all(isinstance(word, str) for word in document["argv"])
        and isinstance(document["argv"], list)
        and _is_time(document.get("seconds", seen.get("seconds", 0.0)))
        and all(name in parts or name not in PARTS or (seen[name] is None and name != "variables") for name in seen)
        and all(_maps(variables.get(name), str) for name in TEXTS)
        and _maps(variables.get("named"), str, type(None))
        and _maps(variables.get("changed"), dict)
        and isinstance(threads.get("started_on"), (str, type(None)))
        and _maps(threads.get("masks"), int)
        and _is_cpu_use(parts.get("cpu_use", {}))
    )


def _is_cpu_use(use: Mapping[str, Any]) -> bool:
    """Return whether what a process says of its threads and CPUs can be reckoned with, if it says anything."""
    if not use:
        return True
    numbers = [use[name] for name in CPU_USE] + ([use["threads"]] if "threads_by" in use else [])
    return (
        all(type(one) is int and one > 0 for one in numbers)
        and all(_is_time(use[name]) for name in ("cpu_s", "helper_cpu_s"))
        and all(_is_decider(from_json(use[name]), kinds) for name, kinds in cpus.DECIDERS.items() if name in use)
        and isinstance(use["above"], list)
        and isinstance(use["on_gpu"], bool)
        and type(use.get("forked_bound", 0)) is int
    )


def _is_decider(message: Message, kinds: tuple[type[Message], ...]) -> bool:
    """Return whether a message is of one of these classes, and its fields have their types."""
    values = message.values()
    libraries, pid = values.pop("libraries", ()), values.pop("pid", 1)
    optional = [values.pop(name) for name in [*values] if hasattr(type(message), name)]
    return (
        isinstance(message, kinds)
        and isinstance(libraries, tuple)
        and all(isinstance(one, str) for one in (*libraries, *values.values()))
        and all(isinstance(one, (str, type(None))) for one in optional)
        and _is_pid(pid)
    )


def is_steps(document: Any) -> bool:
    """Return whether a document has the form in which the hook leaves the steps of an optimizer, or why it has none."""
    if not (_is_pid(document["pid"]) and _is_number(document["rank"]) and isinstance(document["complete"], bool)):
        return False
    if "problem" in document:
        from_json(document["problem"])
        return True
    return all(_is_time(step) for step in (*document.get("warmup_step_s", ()), *document["step_s"]))


def _content(path: Path, left: int) -> bytes:
    """Return what is in a file that a process left. Nothing waits for a FIFO."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        if path.is_symlink():
            raise _Unusable(LinkLeft()) from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise _Unusable(NotAFile())
        if about.st_size > MOST_BYTES:
            raise _Unusable(TooLarge(MOST_BYTES))
        if about.st_size > left:
            raise _Unusable(TooMuch(MOST_IN_ALL))
        return file.read(MOST_BYTES)


def _parsed(content: bytes) -> Any:
    try:
        document = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise _Unusable(TooDeep(DEEPEST)) from None
    except ValueError:
        raise _Unusable(BadJson()) from None
    inside = [document]
    for _ in range(DEEPEST):
        each = [one.values() if isinstance(one, dict) else one for one in inside if isinstance(one, (dict, list))]
        inside = [inner for values in each for inner in values]
    if any(isinstance(one, (dict, list)) for one in inside):
        raise _Unusable(TooDeep(DEEPEST))
    return document


def _holds(holds: Callable[[Any], bool], document: Any) -> bool:
    try:
        return isinstance(document, dict) and holds(document)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return False


def _is_pid(value: Any) -> bool:
    return type(value) is int and 0 < value < LONGEST_PID


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_time(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _maps(value: Mapping[str, Any] | None, *kinds: type) -> bool:
    """Return whether a part of evidence is missing, or maps names to values of these ``kinds``."""
    return value is None or (isinstance(value, dict) and all(type(one) in kinds for one in value.values()))
