"""JSON from outside gives a value, or one reason why it can't be read."""

from __future__ import annotations

import json
import math

import pytest
from envkit.common import documents
from envkit.common.documents import DEEPEST, BadDocument, parse, parse_strictly
from envkit.common.file_messages import (
    JsonTooDeep,
    LongNumber,
    ManyValues,
    NoFiniteNumber,
    NotJson,
    NotUtf8Json,
    TwiceInJson,
)

from tests.refusals import refusal


def nested(levels, opening=b"[", closing=b"]"):
    return opening * levels + b"0" * (opening != b"[") + closing * levels


@pytest.mark.parametrize("content", [b'{"a": [1, "\\ud800"]}', b'\xef\xbb\xbf{"a": 1}\r\n', b"[]", b'"[[[{"', b"1e400"])
def test_json_is_parsed(content):
    assert parse(content) == json.loads(content.decode("utf-8-sig"))


def test_a_record_has_losses_that_are_no_numbers():
    assert math.isnan(parse(b"[NaN]")[0])
    for text in ("NaN", "Infinity", "-Infinity"):
        assert refusal(parse_strictly, b"[%s]" % text.encode(), error=BadDocument) == NoFiniteNumber(text)


@pytest.mark.parametrize("reader", [parse, parse_strictly])
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", NotJson),
        (b"\0", NotJson),
        (b"{} {}", NotJson),
        (b'{"a": 1', NotJson),
        (b"9" * 5000, LongNumber),
        (b"\xff\xfe{\0}\0", NotUtf8Json),
        (b'"\xed\xa0\x80"', NotUtf8Json),
        (nested(DEEPEST + 1), JsonTooDeep),
        (nested(DEEPEST + 1, b'{"a":', b"}"), JsonTooDeep),
        (nested(100_000), JsonTooDeep),
        (b"[" * 100_000, JsonTooDeep),
        (b'{"a":' * 100_000, JsonTooDeep),
    ],
)
def test_what_is_no_json_is_refused_with_its_reason(reader, content, kind):
    assert type(refusal(reader, content, error=BadDocument)) is kind


def test_levels_are_counted():
    assert parse(nested(DEEPEST)) is not None
    assert parse(b"[" + b",".join([nested(DEEPEST - 1)] * 9) + b"]")
    assert parse(b'["' + b"[" * 1000 + b'"]') == ["[" * 1000]


def test_a_key_that_stands_twice_is_refused_where_people_write(monkeypatch):
    content = b'{"a": {"b": 1, "c": 2, "b": 3}}'
    assert parse(content) == {"a": {"b": 3, "c": 2}}
    assert refusal(parse_strictly, content, error=BadDocument) == TwiceInJson("b")


def test_more_values_than_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(documents, "MOST_VALUES", 1000)
    assert len(parse(b"[%s0]" % (b"0," * 900))) == 901
    for content in (b"[%s0]" % (b"0," * 1000), b"[%s]" % b",".join([b"[]"] * 600), b"[%s0]" % (b"{}," * 999)):
        assert refusal(parse, content, error=BadDocument) == ManyValues(1000)
