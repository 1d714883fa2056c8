"""The file that a fleet's report leaves beside the records: its nodes as plain data, for comparison with later ones.

It needs no records: these may be gone by then.
"""

from __future__ import annotations

import contextlib
import json
import re
import types
import typing
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envkit.bench import record
from envkit.cluster.fleet import reading
from envkit.cluster.fleet.extract import LATEST, MOST_BYTES
from envkit.cluster.fleet.messages import (
    EXPECTED,
    GIVE_ANOTHER,
    GIVE_REPORT,
    WRITE_AGAIN,
    NodeTwice,
    NotAReport,
    OtherProfileJudged,
    UnusableReport,
    WrongValue,
)
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.common import atomic, documents, files
from envkit.common.errors import InputError
from envkit.common.folders import short
from envkit.common.messages import OtherSchema
from envkit.messages import Message, from_json

FILE_NAME = "fleet.json"
SCHEMA = 1
RECORDS = f"*/{record.FILE_NAME}"
WRITE_ANEW = ("envkit", "fleet", "report")
# In seconds: the ratio of any two times that are accepted is one that a float can hold.
SHORTEST = 1e-12
SURROGATE = re.compile("[\ud800-\udfff]")

# What must hold for a value, and the kind of value by which ``EXPECTED`` says so.
Check = tuple[Callable[[Any], bool], str]


def write(place: Path, nodes: Sequence[Node], left_out: Sequence[LeftOut]) -> None:
    """Write a report. Raise InputError if it can't be written."""
    document = {
        "schema": SCHEMA,
        "nodes": [asdict(one) for one in nodes],
        "left_out": [one.to_json() for one in left_out],
    }
    atomic.write(place / FILE_NAME, json.dumps(document).encode(), private=True)


def read(place: Path, profile: str | None, asked: Sequence[str] = ()) -> tuple[list[Node], list[LeftOut]]:
    """Return the nodes of a report: ``place`` is its file, or a folder that has one, or else one with records.

    Records that are newer than the folder's report, or of another profile, are read in its place. ``profile`` is the
    one to look at; a file has one already. ``asked`` is as ``reading.read`` takes it. Raise InputError.
    """
    path = place / FILE_NAME if place.is_dir() else place
    if place.is_dir() and (not path.exists() or _has_newer_records(path)):
        return reading.read(place, profile, asked)
    try:
        document = documents.parse(files.content(path, files.MOST_OF_A_RECORD, GIVE_REPORT))
    except ValueError:
        raise _refused(path, NotAReport()) from None
    found = _checked(path, document)
    wrong = next((one.profile for one in found[0] if profile not in (None, one.profile)), None)
    if wrong is not None and place.is_dir() and any(place.glob(RECORDS)):
        return reading.read(place, profile, asked)
    if wrong is not None:
        raise InputError(OtherProfileJudged(str(path), wrong))
    return found


def _refused(path: Path, why: Message) -> InputError:
    """Return the error of a report that can't be used, with the command that writes it anew from its records."""
    if any(path.parent.glob(RECORDS)):
        return InputError(UnusableReport(str(path), why, WRITE_AGAIN, (*WRITE_ANEW, str(short(path.parent)))))
    return InputError(UnusableReport(str(path), why, GIVE_ANOTHER))


def _has_newer_records(path: Path) -> bool:
    """Return whether a node was measured, or went on, after the report in ``path`` was written."""
    written = path.stat().st_mtime_ns
    for one in path.parent.glob(RECORDS):
        with contextlib.suppress(OSError):  # what can't be read is not newer
            if one.stat().st_mtime_ns > written:
                return True
    return False


def _checked(path: Path, document: Any) -> tuple[list[Node], list[LeftOut]]:
    """Return what a report has. Raise InputError if it can't be used."""
    if not isinstance(document, dict) or type(document.get("schema")) is not int:
        raise _refused(path, NotAReport())
    if document["schema"] != SCHEMA:
        anew = (*WRITE_ANEW, str(path.parent)) if any(path.parent.glob(RECORDS)) else ()
        raise InputError(OtherSchema(str(path), "fleet report", document["schema"], SCHEMA, anew))
    nodes, left_out = (_listed(path, document, key, checks) for key, checks in LISTS.items())
    if not nodes:
        raise _refused(path, WrongValue("nodes", EXPECTED["nodes"]))
    twice = next((name for name, count in Counter(one["name"] for one in nodes).items() if count > 1), None)
    if twice is not None:
        raise _refused(path, NodeTwice(twice))
    found = [Node(**{**one, "step_s": tuple(one["step_s"])}) for one in nodes]
    return found, [LeftOut(one["name"], from_json(one["reason"])) for one in left_out]


def _listed(path: Path, document: dict[str, Any], key: str, checks: dict[str, Check]) -> list[Any]:
    listed = document.get(key)
    if not isinstance(listed, list):
        raise _refused(path, WrongValue(key, EXPECTED["list"]))
    for number, one in enumerate(listed):
        if not isinstance(one, dict) or one.keys() != checks.keys():
            raise _refused(path, WrongValue(f"{key}[{number}]", EXPECTED["keys"]))
        for name, (holds, kind) in checks.items():
            if not holds(one[name]):
                raise _refused(path, WrongValue(f"{key}[{number}].{name}", EXPECTED[kind]))
    return listed


def _is_number(value: Any) -> bool:
    """Return whether a value is a number within the range of times, and not NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST


def _is_time(value: Any) -> bool:
    return _is_number(value) and value > SHORTEST


def _is_text(value: Any) -> bool:
    """Return whether a value is a text that UTF-8 has."""
    return isinstance(value, str) and not SURROGATE.search(value)


def _is_reason(value: Any) -> bool:
    """Return whether a value is a message whose class is known and whose fields have their types."""
    try:
        return _has_its_types(from_json(value)) and _is_text(json.dumps(value, ensure_ascii=False))
    except (AttributeError, KeyError, TypeError):
        return False


def _has_its_types(message: Message) -> bool:
    hints = typing.get_type_hints(type(message))
    return all(_fits(value, hints[name]) for name, value in message.values().items())


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a field's value is of its annotated type."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(one, typing.get_args(hint)[0]) for one in value)
    if isinstance(value, Message):
        return isinstance(value, hint) and _has_its_types(value)
    return type(value) in ((int, float) if hint is float else (hint,))


TEXT: Check = (_is_text, "text")
TEXTS: Check = (lambda value: isinstance(value, dict) and all(map(_is_text, value.values())), "texts")
TIME: Check = (lambda value: value is None or _is_time(value), "time")
OF_LEFT_OUT: dict[str, Check] = {"name": TEXT, "reason": (_is_reason, "reason")}
OF_NODE: dict[str, Check] = {
    **dict.fromkeys(("name", "profile", "workload", "kind", "interference"), TEXT),
    "must_agree": TEXTS,
    "facts": TEXTS,
    "memory_bytes": (lambda value: value is None or (isinstance(value, int) and 0 <= value < MOST_BYTES), "bytes"),
    "began": (_is_number, "began"),
    "finished": (lambda value: isinstance(value, bool), "flag"),
    "step_s": (lambda value: isinstance(value, list) and len(value) > 0 and all(map(_is_time, value)), "times"),
    "samples_with_interference": (_is_number, "samples"),
    "reference_kernel_s": TIME,
    "reference_kernel_digest": (lambda value: value is None or _is_text(value), "digest"),
    "clock_mhz": TIME,
}
LISTS = {"nodes": OF_NODE, "left_out": OF_LEFT_OUT}
