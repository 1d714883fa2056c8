"""The file that a fleet's report leaves beside the records: its nodes as plain data, for comparison with later ones.

It needs no records: these may be gone by then.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from envkit.bench import record
from envkit.bench.problem_messages import UnknownProblem
from envkit.bench.problems import restored
from envkit.cluster.fleet import reading
from envkit.cluster.fleet.messages import (
    ENTRY,
    EXPECTED,
    GIVE_ANOTHER,
    GIVE_REPORT,
    LIST,
    SOME_NODES,
    TEXT,
    WRITE_AGAIN,
    NodeTwice,
    NotAReport,
    OtherProfileJudged,
    UnusableReport,
    WrongValue,
)
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.common import atomic, codec, documents, files
from envkit.common.errors import InputError
from envkit.common.file_messages import OtherType
from envkit.common.folders import short
from envkit.common.messages import OtherSchema
from envkit.messages import Message

FILE_NAME = "fleet.json"
SCHEMA = 1
RECORDS = f"*/{record.FILE_NAME}"
WRITE_ANEW = ("envkit", "fleet", "report")
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character, which UTF-8 does not have

Made = TypeVar("Made")


def write(place: Path, nodes: Sequence[Node], left_out: Sequence[LeftOut]) -> None:
    """Write a report. Raise InputError if it can't be written."""
    document = {
        "schema": SCHEMA,
        "nodes": [asdict(node) for node in nodes],
        "left_out": [node.to_json() for node in left_out],
    }
    atomic.write(place / FILE_NAME, json.dumps(document).encode(), private=True)


def read(place: Path, profile: str | None, expected: Sequence[str] = ()) -> tuple[list[Node], list[LeftOut]]:
    """Return the nodes of a report: ``place`` is its file, or a folder that has one, or else one with records.

    Records that are newer than the folder's report, or of another profile, are read in its place. ``profile`` is the
    one to look at; a file has one already. ``expected`` is as ``reading.read`` takes it. Raise InputError.
    """
    is_folder = place.is_dir()
    path = place / FILE_NAME if is_folder else place
    if is_folder and not _is_current(path):
        return reading.read(place, profile, expected)
    try:
        document = documents.parse(files.content(path, files.MOST_OF_A_RECORD, GIVE_REPORT))
    except ValueError:
        raise _refused(path, NotAReport()) from None
    nodes, left_out = _checked(path, document)
    other = next((node.profile for node in nodes if profile not in (None, node.profile)), None)
    if other is not None and is_folder and any(place.glob(RECORDS)):
        return reading.read(place, profile, expected)
    if other is not None:
        raise InputError(OtherProfileJudged(str(path), other))
    return nodes, left_out


def _refused(path: Path, why: Message) -> InputError:
    """Return the error of a report that can't be used, with the command that writes it anew from its records."""
    if any(path.parent.glob(RECORDS)):
        return InputError(UnusableReport(str(path), why, WRITE_AGAIN, (*WRITE_ANEW, str(short(path.parent)))))
    return InputError(UnusableReport(str(path), why, GIVE_ANOTHER))


def _is_current(path: Path) -> bool:
    """Return whether a report is in ``path``, and no node was measured, or went on, after it was written."""
    written = _modified_ns(path)
    if written is None:
        return False
    changed = (_modified_ns(of_node) for of_node in path.parent.glob(RECORDS))
    return all(changed_ns is None or changed_ns <= written for changed_ns in changed)


def _modified_ns(path: Path) -> int | None:
    """Return when a file was changed last, in nanoseconds since 1970; None if it can't be read."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _checked(path: Path, document: object) -> tuple[list[Node], list[LeftOut]]:
    """Return what a report has. Raise InputError if it can't be used."""
    if not isinstance(document, dict) or type(schema := document.get("schema")) is not int:
        raise _refused(path, NotAReport())
    if schema != SCHEMA:
        anew = (*WRITE_ANEW, str(path.parent)) if any(path.parent.glob(RECORDS)) else ()
        raise InputError(OtherSchema.of(str(path), "fleet report", schema, SCHEMA, anew))
    nodes = _listed(path, document, "nodes", codec.required(Node), _node)
    left_out = _listed(path, document, "left_out", codec.required(LeftOut), _left_out)
    if not nodes:
        raise _refused(path, WrongValue("nodes", SOME_NODES))
    twice = next((name for name, count in Counter(node.name for node in nodes).items() if count > 1), None)
    if twice is not None:
        raise _refused(path, NodeTwice(twice))
    return nodes, left_out


def _listed(
    path: Path,
    document: Mapping[str, object],
    key: str,
    fields: Sequence[str],
    parse: Callable[[Mapping[str, object]], Made],
) -> list[Made]:
    """Return the entries of a list in a report. Raise InputError that names the first wrong value."""
    entries = document.get(key)
    if not isinstance(entries, list):
        raise _refused(path, WrongValue(key, LIST))
    parsed = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.keys() != {*fields}:
            raise _refused(path, WrongValue(f"{key}[{number}]", ENTRY))
        invalid = next((name for name in fields if SURROGATE.search(json.dumps(entry[name], ensure_ascii=False))), None)
        try:
            if invalid is None:
                parsed.append(parse(entry))
        except codec.Misfit as error:
            invalid = str(error.message.values()["key"])
        if invalid is not None:
            raise _refused(path, WrongValue(f"{key}[{number}].{invalid}", EXPECTED.get(invalid, TEXT)))
    return parsed


def _node(entry: Mapping[str, object]) -> Node:
    return codec.parse(entry, Node)


def _left_out(entry: Mapping[str, object]) -> LeftOut:
    """Return a node that was left out. Raise Misfit for another form, or a message that this version does not know."""
    name, reason = entry["name"], restored(entry["reason"])
    if not isinstance(name, str):
        raise codec.Misfit(OtherType("name"))
    if isinstance(reason, UnknownProblem):
        raise codec.Misfit(OtherType("reason"))
    return LeftOut(name, reason)
