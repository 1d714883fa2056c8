"""What holds for every record, whatever is in it and wherever it was cut off."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.bench.record import FILE_NAME, SCHEMA, Record
from envkit.bench.record_messages import NoWholeLine
from envkit.common.errors import InputError
from envkit.rendering import text_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
fields = st.dictionaries(st.text().filter(lambda name: name not in ("event", "self")), json_values, max_size=4)
# Of samples, trials and ends the order counts.
kinds = st.text(max_size=8).filter(lambda kind: kind not in (*record.MEASURED, "end", "resume"))
events = st.lists(st.tuples(kinds, fields), max_size=4)
# Most bytes are no record at all: these lines are, or nearly.
lines = st.sampled_from(
    [
        json.dumps({"event": "run", "schema": SCHEMA}).encode(), b'{"event": "sample"}', b'{"event": []}', b"{}", b"",
        b"[1]", b'{"event": "run", "schema": "1"}', b'{"event": "run", "schema": true}', b"\x00" * 9, b"\xff\xfe{\x00}",
        b'{"event": "run", "schema": 1e999}', b'{"a": ' * 20_000, b"1" * 5_000, b'{"event": "\xed\xa0\x80"}',
    ]
)  # fmt: skip
contents = st.binary(max_size=200) | st.tuples(st.lists(lines, max_size=4), st.binary(max_size=9)).map(
    lambda parts: b"".join(line + b"\n" for line in parts[0]) + parts[1]
)


@pytest.fixture(scope="module")
def folder():
    """One for all examples, which each make its record anew."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def recorded(folder, appended):
    """Record a run of these events; returns them as they were told to have been recorded."""
    (folder / FILE_NAME).unlink(missing_ok=True)
    with Record.create(folder) as opened:
        first = opened.append("run", schema=SCHEMA)
        return [first, *(opened.append(kind, **extra) for kind, extra in appended)]


def said(read, folder):
    """Why ``read`` refuses the record, or None where it reads it."""
    try:
        read(folder)
    except InputError as error:
        return text_of(error)
    return None


@given(appended=events)
def test_what_is_appended_is_what_is_read(folder, appended):
    returned = recorded(folder, appended)
    assert record.read(folder) == returned
    assert record.first(folder) == returned[0]
    for (kind, extra), event in zip(appended, returned[1:], strict=True):
        assert event == {"time": event["time"], **extra, "event": kind}


@given(appended=events, cut=st.floats(0, 1))
@example(appended=[("sample", {})], cut=1.0)
def test_the_beginning_of_a_record_has_the_beginning_of_its_events(folder, appended, cut):
    returned = recorded(folder, appended)
    content = (folder / FILE_NAME).read_bytes()
    beginning = content[: round(cut * len(content))]
    (folder / FILE_NAME).write_bytes(beginning)
    whole = beginning.count(b"\n")
    if whole == 0:
        with pytest.raises(InputError) as caught:
            record.read(folder)
        assert caught.value.message.problem == NoWholeLine()
    else:
        assert record.read(folder) == returned[:whole]


@given(appended=events, cut=st.floats(0, 1))
@example(appended=[("sample", {})], cut=1.0)
def test_a_record_that_goes_on_has_no_half_line_and_loses_no_whole_one(folder, appended, cut):
    returned = recorded(folder, appended)
    content = (folder / FILE_NAME).read_bytes()
    first = content.index(b"\n") + 1
    cut_off = content[: first + round(cut * (len(content) - first))]
    (folder / FILE_NAME).write_bytes(cut_off)
    with Record.reopen(folder) as opened:
        added = opened.append("resume")
    assert record.read(folder) == [*returned[: cut_off.count(b"\n")], added]
    assert (folder / FILE_NAME).read_bytes().endswith(b"}\n")


@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_run_that_was_killed_before_its_first_line_is_begun_anew(folder, cut):
    recorded(folder, [])
    content = (folder / FILE_NAME).read_bytes()
    (folder / FILE_NAME).write_bytes(content[: int(cut * len(content))])
    with Record.create(folder) as opened:
        first = opened.append("run", schema=SCHEMA)
    assert record.read(folder) == [first]


@settings(max_examples=3 * settings.default.max_examples)
@given(content=contents)
def test_whatever_a_file_holds_it_is_read_or_refused_in_one_line(folder, content):
    (folder / FILE_NAME).write_bytes(content)
    refused = said(record.read, folder)
    if refused is None:
        found = record.read(folder)
        assert all(isinstance(event["event"], str) for event in found)
        assert (found[0]["event"], found[0]["schema"]) == ("run", SCHEMA)
        assert record.first(folder) == found[0]
    else:
        assert re.fullmatch(rf"{folder}/{FILE_NAME}:.+", refused)
        assert re.fullmatch(rf"{folder}/{FILE_NAME}:.+", said(record.first, folder) or refused)
    assert (folder / FILE_NAME).read_bytes() == content
