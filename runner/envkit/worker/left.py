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
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

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

if TYPE_CHECKING:
    from typing import TypeGuard

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


class EvidenceDocument(TypedDict, total=False):
    """The evidence of a process, and the seconds that collecting it took."""

    pid: int
    argv: list[str]
    evidence: dict[str, object]
    seconds: float


class StepsDocument(TypedDict, total=False):
    """The steps of a process's optimizer, in seconds; or the ``problem`` (a message) that prevented them."""

    pid: int
    rank: int
    complete: bool
    problem: dict[str, object]
    warmup_step_s: list[float]
    step_s: list[float]


Document = TypeVar("Document")


@dataclass
class Documents(Generic[Document]):
    """``documents`` are those that can be used. ``unread`` are the names of the others, and ``reason`` of the first."""

    documents: list[Document] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    reason: Message | None = None

    @property
    def problem(self) -> SomeUnread | None:
        """Name the first unusable document and the number of these, or return None."""
        return SomeUnread(len(self.unread), self.unread[0], self.reason) if self.reason else None

    def leave_out(self, name: str, reason: Message) -> None:
        self.unread.append(name)
        self.reason = self.reason or reason


def read(
    folder: Path, pattern: str, is_valid: Callable[[dict[str, object]], TypeGuard[Document]]
) -> Documents[Document]:
    """Return the valid documents in the files of ``folder`` that are called as ``pattern``."""
    documents: Documents[Document] = Documents()
    room = MOST_IN_ALL
    for path in sorted(folder.glob(pattern)):
        try:
            content = _content(path, room)
            room -= len(content)
            documents.documents.append(_valid(_parsed(content), is_valid))
        except _Unusable as error:
            documents.leave_out(path.name, error.message)
        except OSError as error:
            documents.leave_out(path.name, Unreadable(str(error.strerror)))
    return documents


def evidence(folder: Path, pattern: str = "*.json") -> Documents[EvidenceDocument]:
    """Return the evidence that processes left, each document with all keys of an ``EvidenceDocument``."""
    documents = read(folder, pattern, is_evidence)
    for document in documents.documents:
        document["evidence"] = {"variables": {}, "seconds": 0.0, **document["evidence"]}
        if "seconds" not in document:
            seconds = document["evidence"]["seconds"]
            document["seconds"] = seconds if isinstance(seconds, (int, float)) else 0.0
    return documents


def is_evidence(document: dict[str, object]) -> TypeGuard[EvidenceDocument]:
    """Return whether a document has the form of a process's evidence, as far as what reads it relies on that."""
    observed, argv = document["evidence"], document["argv"]
    if not isinstance(observed, dict) or not isinstance(argv, list):
        return False
    sections = {name: value for name, value in observed.items() if isinstance(value, dict)}
    variables, threads = sections.get("variables", {}), sections.get("threads", {})
    return (
        _is_pid(document["pid"])
        and all(isinstance(word, str) for word in argv)
        and _is_time(document.get("seconds", observed.get("seconds", 0.0)))
        and all(
            name in sections or name not in PARTS or (value is None and name != "variables")
            for name, value in observed.items()
        )
        and all(_maps(variables.get(name), str) for name in TEXTS)
        and _maps(variables.get("named"), str, type(None))
        and _maps(variables.get("changed"), dict)
        and isinstance(threads.get("started_on"), (str, type(None)))
        and _maps(threads.get("masks"), int)
        and _is_cpu_use(sections.get("cpu_use", {}))
    )


def _is_cpu_use(use: Mapping[str, object]) -> bool:
    """Return whether what a process says of its threads and CPUs can be reckoned with, if it says anything."""
    if not use:
        return True
    numbers = [use[name] for name in CPU_USE] + ([use["threads"]] if "threads_by" in use else [])
    return (
        all(type(number) is int and number > 0 for number in numbers)
        and all(_is_time(use[name]) for name in ("cpu_s", "helper_cpu_s"))
        and all(_is_decider(use[name], kinds) for name, kinds in cpus.DECIDERS.items() if name in use)
        and isinstance(use["above"], list)
        and isinstance(use["on_gpu"], bool)
        and type(use.get("forked_bound", 0)) is int
    )


def _is_decider(document: object, kinds: tuple[type[Message], ...]) -> bool:
    """Return whether a message is of one of these classes, and its fields have their types."""
    if not isinstance(document, dict):
        return False
    message = from_json(document)
    values = message.values()
    libraries, pid = values.pop("libraries", ()), values.pop("pid", 1)
    optional = [values.pop(name) for name in [*values] if hasattr(type(message), name)]
    return (
        isinstance(message, kinds)
        and isinstance(libraries, tuple)
        and all(isinstance(text, str) for text in (*libraries, *values.values()))
        and all(isinstance(text, (str, type(None))) for text in optional)
        and _is_pid(pid)
    )


def is_steps(document: dict[str, object]) -> TypeGuard[StepsDocument]:
    """Return whether a document has the form in which the hook leaves the steps of an optimizer, or why it has none."""
    if not (_is_pid(document["pid"]) and _is_number(document["rank"]) and isinstance(document["complete"], bool)):
        return False
    if "problem" in document:
        problem = document["problem"]
        if not isinstance(problem, dict):
            return False
        from_json(problem)
        return True
    lists = (document.get("warmup_step_s", []), document["step_s"])
    return all(isinstance(steps, list) and all(map(_is_time, steps)) for steps in lists)


def _content(path: Path, room: int) -> bytes:
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
        if about.st_size > room:
            raise _Unusable(TooMuch(MOST_IN_ALL))
        return file.read(MOST_BYTES)


def _parsed(content: bytes) -> object:
    try:
        document = json.loads(content.decode("utf-8"))
    except RecursionError:
        raise _Unusable(TooDeep(DEEPEST)) from None
    except ValueError:
        raise _Unusable(BadJson()) from None
    level = [document]
    for _ in range(DEEPEST):
        each = [value.values() if isinstance(value, dict) else value for value in level if _is_container(value)]
        level = [inner for values in each for inner in values]
    if any(map(_is_container, level)):
        raise _Unusable(TooDeep(DEEPEST))
    return document


def _is_container(value: object) -> bool:
    return isinstance(value, (dict, list))


def _valid(document: object, is_valid: Callable[[dict[str, object]], TypeGuard[Document]]) -> Document:
    try:
        if isinstance(document, dict) and is_valid(document):
            return document
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        pass
    raise _Unusable(OtherForm())


def _is_pid(value: object) -> bool:
    return type(value) is int and 0 < value < LONGEST_PID


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and _is_number(value) and value >= 0


def _maps(value: object, *kinds: type) -> bool:
    """Return whether a part of evidence is missing, or maps names to values of these ``kinds``."""
    return value is None or (isinstance(value, dict) and all(type(inner) in kinds for inner in value.values()))
