"""The file that a fleet's report leaves beside the records: its nodes as plain data, for later ones to be held against.

It needs no records: these may be gone by then.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from envkit.bench import record
from envkit.cluster.fleet import reading
from envkit.cluster.fleet.extract import LATEST
from envkit.cluster.fleet.node import LeftOut, Node
from envkit.common import atomic
from envkit.common.errors import InputError
from envkit.common.folders import quoted
from envkit.common.messages import OtherSchema

FILE_NAME = "fleet.json"
SCHEMA = 1
RECORDS = f"*/{record.FILE_NAME}"
# In seconds: the ratio of any two times that are accepted is one that a float can hold.
SHORTEST = 1e-12
SURROGATE = re.compile("[\ud800-\udfff]")

# What holds for a value, and what it is then.
Check = tuple[Callable[[Any], bool], str]


def write(place: Path, nodes: Sequence[Node], left_out: Sequence[LeftOut]) -> None:
    """Raises InputError where it can't be written."""
    document = {
        "schema": SCHEMA,
        "nodes": [asdict(one) for one in nodes],
        "left_out": [asdict(one) for one in left_out],
    }
    atomic.write(place / FILE_NAME, json.dumps(document).encode(), private=True)


def read(place: Path, profile: str | None, asked: Sequence[str] = ()) -> tuple[list[Node], list[LeftOut]]:
    """The nodes of a report: ``place`` is its file, or a folder that has one, or else one with records.

    Records that are newer than the folder's report, or of another profile, are read in its place. ``profile`` is the
    one to look at; a file has one already. ``asked`` is as ``reading.read`` takes it. Raises InputError.
    """
    path = place / FILE_NAME if place.is_dir() else place
    if place.is_dir() and (not path.exists() or _has_newer_records(path)):
        return reading.read(place, profile, asked)
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}; give a fleet's folder, or its report") from None
    except (ValueError, RecursionError):
        raise _refused(path, "is no report of a fleet, or is damaged") from None
    found = _checked(path, document)
    wrong = next((one.profile for one in found[0] if profile not in (None, one.profile)), None)
    if wrong is not None and place.is_dir() and any(place.glob(RECORDS)):
        return reading.read(place, profile, asked)
    if wrong is not None:
        raise InputError(f"{path}: judged its nodes by {wrong}; leave --profile out, or give the folder of its records")
    return found


def _refused(path: Path, why: str) -> InputError:
    """For a report that can't be worked with, with the mend where its records are beside it."""
    if any(path.parent.glob(RECORDS)):
        return InputError(f"{path}: {why}; write it anew: envkit fleet report {quoted(path.parent)}")
    return InputError(f"{path}: {why}; give another report, or a fleet's folder with its records")


def _has_newer_records(path: Path) -> bool:
    """Whether a node was measured, or went on, after the report in ``path`` was written."""
    written = path.stat().st_mtime_ns
    for one in path.parent.glob(RECORDS):
        with contextlib.suppress(OSError):  # what can't be read is not newer
            if one.stat().st_mtime_ns > written:
                return True
    return False


def _checked(path: Path, document: Any) -> tuple[list[Node], list[LeftOut]]:
    """What a report has, once it is certain that it can be worked with."""
    if not isinstance(document, dict) or type(document.get("schema")) is not int:
        raise _refused(path, "is no report of a fleet, or is damaged")
    if document["schema"] != SCHEMA:
        anew = ("envkit", "fleet", "report", str(path.parent)) if any(path.parent.glob(RECORDS)) else ()
        raise InputError(OtherSchema(str(path), "fleet report", document["schema"], SCHEMA, anew))
    nodes, left_out = (_listed(path, document, key, checks) for key, checks in LISTS.items())
    if not nodes:
        raise _refused(path, "nodes: there are none")
    twice = next((name for name, count in Counter(one["name"] for one in nodes).items() if count > 1), None)
    if twice is not None:
        raise _refused(path, f"nodes: has {twice} twice")
    return [Node(**{**one, "step_s": tuple(one["step_s"])}) for one in nodes], [LeftOut(**one) for one in left_out]


def _listed(path: Path, document: dict[str, Any], key: str, checks: dict[str, Check]) -> list[Any]:
    listed = document.get(key)
    if not isinstance(listed, list):
        raise _refused(path, f"{key}: is no list")
    for number, one in enumerate(listed):
        if (wrong := _wrong(one, checks)) is not None:
            raise _refused(path, f"{key}[{number}]{wrong}")
    return listed


def _wrong(one: Any, checks: dict[str, Check]) -> str | None:
    """What of a node is not as it should be, as the end of a message's first part."""
    if not isinstance(one, dict) or one.keys() != checks.keys():
        return ": has not the keys of one"
    found = next((name for name, (holds, _) in checks.items() if not holds(one[name])), None)
    return None if found is None else f".{found}: is not {checks[found][1]}"


def _is_number(value: Any) -> bool:
    """Whether it is one that can be worked with, and no NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LATEST


def _is_time(value: Any) -> bool:
    return _is_number(value) and value > SHORTEST


def _is_text(value: Any) -> bool:
    """Whether it is one that can be written, in UTF-8."""
    return isinstance(value, str) and not SURROGATE.search(value)


TEXT: Check = (_is_text, "a text")
TEXTS: Check = (lambda value: isinstance(value, dict) and all(map(_is_text, value.values())), "texts by name")
TIME: Check = (lambda value: value is None or _is_time(value), "a number above 0, or null")
OF_LEFT_OUT = {"name": TEXT, "reason": TEXT}
OF_NODE: dict[str, Check] = {
    **dict.fromkeys(("name", "profile", "workload", "kind", "interference"), TEXT),
    "must_agree": TEXTS,
    "facts": TEXTS,
    "memory_bytes": (lambda value: value is None or isinstance(value, int), "a whole number, or null"),
    "began": (_is_number, "a time in seconds since 1970"),
    "finished": (lambda value: isinstance(value, bool), "true or false"),
    "step_s": (
        lambda value: isinstance(value, list) and len(value) > 0 and all(map(_is_time, value)),
        "a list of times above 0, in seconds",
    ),
    "samples_with_interference": (_is_number, "a number of samples"),
    "reference_kernel_s": TIME,
    "reference_kernel_digest": (lambda value: value is None or _is_text(value), "a text, or null"),
    "clock_mhz": TIME,
}
LISTS = {"nodes": OF_NODE, "left_out": OF_LEFT_OUT}
