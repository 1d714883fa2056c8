from __future__ import annotations

import errno
import fcntl
import json
import os
from pathlib import Path

import pytest
from envkit.bench import record
from envkit.bench.messages import HoldsRun
from envkit.bench.record import FILE_NAME, SCHEMA, Record, RecordFull
from envkit.bench.record_messages import (
    GIVE_RUN,
    DamagedLine,
    NoSchema,
    NotLockable,
    NotReopened,
    NoWholeLine,
    OtherKind,
    OtherRunner,
    ResultsUnwritable,
    UnusableRecord,
)
from envkit.common.errors import InputError
from envkit.common.messages import OtherSchema, Unreadable, Unwritable
from envkit.messages import Printed

from tests.records import run_events, write
from tests.refusals import refusal


@pytest.fixture
def folder(tmp_path):
    """The folder of a run that has recorded its beginning and two samples."""
    with Record.create(tmp_path / "run") as opened:
        opened.append("run", schema=SCHEMA, study={})
        opened.append("sample", seconds=1.5)
        opened.append("sample", seconds=2.5)
    return tmp_path / "run"


def seconds(folder):
    return [event["seconds"] for event in record.read(folder) if event["event"] == "sample"]


def damage(folder, number, line):
    """Replace the line ``number`` (from 1) by these bytes."""
    path = folder / FILE_NAME
    lines = path.read_bytes().splitlines()
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")


def test_each_event_is_on_disk_when_append_returns(tmp_path, monkeypatch):
    flushed = set()
    monkeypatch.setattr(os, "fsync", lambda number: flushed.add(str(Path(f"/proc/self/fd/{number}").readlink())))
    with Record.create(tmp_path) as opened:
        assert flushed == {str(tmp_path)}
        returned = opened.append("run", schema=SCHEMA)
        assert flushed == {str(tmp_path), str(tmp_path / FILE_NAME)}
        assert record.read(tmp_path) == [returned]


def test_missing_folders_are_made(tmp_path):
    with Record.create(tmp_path / "a/b/c") as opened:
        assert opened.path.is_file()


def test_a_second_run_in_the_same_folder_is_refused(folder):
    before = (folder / FILE_NAME).read_bytes()
    assert refusal(Record.create, folder) == HoldsRun(str(folder / FILE_NAME), str(folder))
    assert (folder / FILE_NAME).read_bytes() == before


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    there = tmp_path / "file/run"
    assert refusal(Record.create, there) == ResultsUnwritable(str(there), Printed("Not a directory"))


def test_a_record_that_is_being_written_is_not_reopened(folder):
    with Record.reopen(folder):
        assert refusal(Record.reopen, folder) == OtherRunner(str(folder / FILE_NAME))
    with Record.reopen(folder):
        pass  # free again


def test_reading_does_not_wait_for_the_writer(folder):
    with Record.reopen(folder):
        assert seconds(folder) == [1.5, 2.5]


def test_reopening_what_is_not_there(tmp_path):
    assert refusal(Record.reopen, tmp_path) == NotReopened(
        str(tmp_path), FILE_NAME, Printed("No such file or directory")
    )


def test_reading_what_is_not_there(tmp_path):
    found = refusal(record.read, tmp_path / "none")
    assert found == Unreadable(f"{tmp_path}/none/{FILE_NAME}", Printed("No such file or directory"), GIVE_RUN)


@pytest.mark.parametrize("line", [b'{"event": "sample", "sec', b"", b"[]", b'{"event": "sample", "seconds": \xff\xfe}'])
@pytest.mark.parametrize("number", [1, 2])
def test_a_damaged_line_is_named(folder, number, line):
    damage(folder, number, line)
    found = refusal(record.read, folder)
    assert found == UnusableRecord(str(folder / FILE_NAME), DamagedLine(), number)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", NoWholeLine()),
        ('{"event": "run"', NoWholeLine()),
        ('{"event": "sample"}\n', OtherKind("run")),
        ("{}\n", OtherKind("run")),
        ('{"event": "run", "study": {}}\n', NoSchema()),
    ],
)
def test_a_file_that_is_no_record(tmp_path, content, problem):
    (tmp_path / FILE_NAME).write_text(content)
    assert refusal(record.read, tmp_path) == UnusableRecord(str(tmp_path / FILE_NAME), problem)


@pytest.mark.parametrize("schema", [-1, 0, SCHEMA - 1, SCHEMA + 1])
@pytest.mark.parametrize("read", [record.read, record.first])
def test_a_record_of_another_schema_is_refused_before_its_other_lines_are_read(folder, schema, read):
    damage(folder, 1, json.dumps({"event": "run", "schema": schema}).encode())
    damage(folder, 2, b"another format")
    with pytest.raises(InputError) as error:
        read(folder)
    assert error.value.message == OtherSchema.of(str(folder / FILE_NAME), "record", schema, SCHEMA)


@pytest.mark.parametrize("schema", [None, True, "3", 2.0])
def test_a_schema_that_is_no_number(folder, schema):
    damage(folder, 1, json.dumps({"event": "run", "schema": schema}).encode())
    assert refusal(record.read, folder).problem == NoSchema()


def rewritten(folder, change):
    """Make a run's record of seven blocks, and have ``change`` change the list of its lines."""
    path = write(folder, run_events()) / FILE_NAME
    lines = path.read_text().splitlines(keepends=True)
    change(lines)
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.insert(6, lines[5]),
        lambda lines: lines.insert(12, lines[2]),
        lambda lines: lines.extend(lines),
    ],
    ids=["twice in turn", "again later", "the whole file twice"],
)
def test_a_measurement_that_stands_there_twice_counts_once(cli, tmp_path, change):
    folder = rewritten(tmp_path / "run", change).parent
    told = cli("report", folder).ended(0)
    write(folder, run_events())
    assert told.stdout == cli("report", folder).stdout


def test_a_trial_of_a_search_that_stands_there_twice_counts_once(tmp_path):
    first = {"event": "tune", "schema": SCHEMA}
    trials = [{"event": "trial", "round": 0, "candidate": one, "time": one} for one in (-1, -1, 0, -1)]
    write(tmp_path, [first, *trials, {**trials[0], "time": 2}])  # at last once more: the baseline was disturbed
    assert [event["time"] for event in record.read(tmp_path, "tune")[1:]] == [-1, 0, 2]


def test_two_samples_in_one_place_are_refused(refused, tmp_path):
    other = json.dumps({**run_events()[5], "worker_seconds": 9.0}) + "\n"
    path = rewritten(tmp_path / "run", lambda lines: lines.insert(7, other))
    said = "a second sample of 'baseline' in block 3, after that on line 6; remove one of them"
    assert refused("report", path.parent) == f"envkit: {path}:8: {said}"


def backwards(lines):
    lines[1:] = reversed(lines[1:])


def blocks_backwards(lines):
    lines[1:-1] = reversed(lines[1:-1])


@pytest.mark.parametrize(
    ("change", "number", "after"),
    [(backwards, 3, "the end of the run"), (blocks_backwards, 4, "those of block 7")],
)
def test_measurements_in_another_order_are_refused(refused, tmp_path, change, number, after):
    path = rewritten(tmp_path / "run", change)
    said = "lines are out of order; sort them by time"
    assert refused("report", path.parent) == f"envkit: {path}:{number}: a sample follows {after}: {said}"


def test_a_run_that_goes_on_may_complete_an_earlier_block(tmp_path):
    """As after a damaged line was removed."""
    resume = json.dumps({"event": "resume", "time": 0}) + "\n"
    path = rewritten(tmp_path / "run", lambda lines: lines.extend([resume, lines.pop(5)]))
    assert len(record.read(path.parent)) == len(run_events()) + 1


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    file = tmp_path / "run" / FILE_NAME
    assert refusal(Record.create, tmp_path / "run") == NotLockable(str(file), "No locks available")


def test_a_full_disk_leaves_the_file_as_it_was(folder, monkeypatch):
    """The system takes half of the line and then has no room: the half is taken back."""
    write = os.write
    calls = []

    def half_then_full(descriptor, data):
        calls.append(data)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: len(data) // 2])

    before = (folder / FILE_NAME).read_bytes()
    with Record.reopen(folder) as opened:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half_then_full)
            with pytest.raises(RecordFull) as error:
                opened.append("sample", seconds=3.5)
        assert error.value.message == Unwritable(str(folder / FILE_NAME), "No space left on device")
        assert len(calls) == 2
        assert (folder / FILE_NAME).read_bytes() == before
        opened.append("sample", seconds=4.5)  # there is room again
    assert seconds(folder) == [1.5, 2.5, 4.5]
