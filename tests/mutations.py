"""Valid documents with something wrong in them: what an author, another program or a bad disk may leave."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

# What stands in the place of a value: every type, and what tends to be mishandled.
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, -(10**19), 1.5, 1e308, -0.0, float("nan"), float("inf"), "", "x", "0",
    "1", "\0", "\ud800", "\x1b[31m", "../..", "é" * 300, "9" * 5000, [], {}, [[]], [None], [1, "x"], {"code": "x"},
    {"": {}}, {"code": []}, [[[[[[[[[[]]]]]]]]]],
)  # fmt: skip
TEXTS = (b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b'"', b"{", b"]", b"\\", b"\xed\xa0\x80", b"1e999")
ROWS = (
    "x: &a [*a]\n", "? [a]\n: b\n", "<<: *x\n", "!!python/object:os.system {}\n", "x: !!binary a\n", "%YAML 9.9\n",
    "---\n", "...\n", "x: 2026-13-45\n", "x: 0x\n", "x: .inf\n",
)  # fmt: skip
Place = tuple[Any, ...]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the path of everything in a document but of itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def _at(document: Any, path: Place) -> Any:
    for key in path:
        document = document[key]
    return document


@st.composite
def documents(draw: st.DrawFn, document: Any, most: int = 2) -> Any:
    """A copy of a document of lists and dictionaries, with values removed, retyped, moved or repeated."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, most))):
        ways = sorted(places(found), key=lambda path: (len(path), repr(path)))
        if not ways:
            break
        *way, last = draw(st.sampled_from(ways))
        inner = _at(found, tuple(way))
        kind = draw(st.sampled_from(("retype", "retype", "remove", "repeat", "add", "swap")))
        if kind == "remove":
            del inner[last]
        elif kind == "repeat" and isinstance(inner, list):
            inner.insert(last, copy.deepcopy(inner[last]))
        elif kind == "add" and isinstance(inner, dict):
            inner[draw(st.sampled_from(("", "x", "event", "\ud800")))] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif kind == "swap":
            inner[last] = copy.deepcopy(_at(document, draw(st.sampled_from(sorted(places(document), key=repr)))))
        else:
            inner[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    return found


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with one of the damages that editors, disks and transfers do; or the bytes as they are."""
    at = draw(st.integers(0, len(content)))
    kind = draw(st.sampled_from(("whole",) * 10 + ("cut", "flip", "insert", "utf-16", "crlf", "bom", "twice", "empty")))
    if kind == "cut":
        return content[:at]
    if kind == "flip" and at < len(content):
        return content[:at] + bytes([content[at] ^ draw(st.sampled_from((1, 2, 32, 128)))]) + content[at + 1 :]
    if kind == "insert":
        return content[:at] + draw(st.sampled_from(TEXTS)) + content[at:]
    other = {
        "utf-16": content.decode(errors="replace").encode("utf-16"), "crlf": content.replace(b"\n", b"\r\n"),
        "bom": b"\xef\xbb\xbf" + content, "twice": content + content, "empty": b"",
    }  # fmt: skip
    return other.get(kind, content)


@st.composite
def jsons(draw: st.DrawFn, document: Any) -> bytes:
    """A JSON document with something wrong in it."""
    return draw(damaged(json.dumps(draw(documents(document))).encode()))


@st.composite
def lines(draw: st.DrawFn, events: Sequence[Any]) -> bytes:
    """A file with a JSON document on each line, as a record, with something wrong in one of them, or in their order."""
    found = list(events)
    at = draw(st.integers(0, len(found) - 1))
    kind = draw(st.sampled_from(("change",) * 8 + ("remove", "repeat", "swap")))
    if kind == "remove":
        del found[at]
    elif kind == "repeat":
        found.insert(at, found[at])
    elif kind == "swap":
        found[0], found[at] = found[at], found[0]
    else:
        found[at] = draw(documents(found[at]))
    return draw(damaged(b"".join(json.dumps(one).encode() + b"\n" for one in found)))


@st.composite
def yamls(draw: st.DrawFn, text: str) -> bytes:
    """A YAML file with something wrong in a value, or in its text."""
    if draw(st.booleans()):
        changed = draw(documents(yaml.safe_load(text)))
        content = yaml.safe_dump(changed, sort_keys=False, allow_unicode=False).encode("utf-8", "surrogatepass")
    else:
        rows = text.splitlines(keepends=True)
        at = draw(st.integers(0, len(rows) - 1))
        own = (rows[at] * 2, "", f" {rows[at]}", rows[at].lstrip(), f"- {rows[at]}")
        row = draw(st.sampled_from((*own, *ROWS)))
        content = "".join([*rows[:at], row, *rows[at + 1 :]]).encode()
    return draw(damaged(content))
