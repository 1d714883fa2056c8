"""Parse JSON that somebody else may have written, or give one reason why it is not usable."""

from __future__ import annotations

import codecs
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from envkit.common.file_messages import (
    JsonTooDeep,
    LongNumber,
    ManyValues,
    NoFiniteNumber,
    NotJson,
    NotUtf8Json,
    TwiceInJson,
)
from envkit.messages import MessageError

# The documents that the kit writes have up to 12 levels.
DEEPEST = 64
# So many values take at most about 2 GB of memory.
MOST_VALUES = 16 * 2**20


class BadDocument(MessageError, ValueError):
    """Raised for bytes that are no JSON document, or one that would take too much memory."""


def parse(content: bytes) -> Any:
    """Return what a JSON document says. NaN and infinities are numbers, as in a record. Raise BadDocument."""
    return _parsed(content)


def parse_strictly(content: bytes) -> Any:
    """Return what a document says that people may have edited: without NaN, and each key once. Raise BadDocument."""
    return _parsed(content, object_pairs_hook=_each_once, parse_constant=_refuse)


def values(content: bytes) -> int:
    """Return how many values a document has at most."""
    return content.count(b",") + content.count(b"[") + content.count(b"{") + 1


def _parsed(
    content: bytes,
    object_pairs_hook: Callable[[list[tuple[str, object]]], object] | None = None,
    parse_constant: Callable[[str], object] | None = None,
) -> object:
    if len(content) > MOST_VALUES and values(content) > MOST_VALUES:
        raise BadDocument(ManyValues(MOST_VALUES))
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
        document = json.loads(text, object_pairs_hook=object_pairs_hook, parse_constant=parse_constant)
    except UnicodeDecodeError as error:
        raise BadDocument(NotUtf8Json(error.start, f"0x{error.object[error.start]:02x}")) from None
    except json.JSONDecodeError as error:
        raise BadDocument(NotJson(str(error))) from None
    except BadDocument:
        raise
    except ValueError:
        raise BadDocument(LongNumber()) from None
    except RecursionError:
        raise BadDocument(JsonTooDeep(DEEPEST)) from None
    if content.count(b"[") + content.count(b"{") > DEEPEST and is_deeper(document, DEEPEST):
        raise BadDocument(JsonTooDeep(DEEPEST))
    return document


def is_deeper(document: object, levels: int) -> bool:
    """Return whether lists and objects are nested in more than so many ``levels``."""
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(levels):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def _each_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise BadDocument(TwiceInJson(next(name for name, times in counts.items() if times > 1)))
    return document


def _refuse(text: str) -> NoReturn:
    raise BadDocument(NoFiniteNumber(text))
