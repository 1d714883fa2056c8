"""A run's file: one JSON document per line, appended and flushed to disk as things happen, never rewritten.

Its first event holds all that decides what is started, and carries a seal (``envkit.bench.seal``). Only the user may
read the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from envkit.bench import seal
from envkit.bench.events import EVENTS
from envkit.bench.messages import HoldsRun
from envkit.bench.record_messages import (
    GIVE_RUN,
    AfterBlock,
    AfterEnd,
    DamagedLine,
    EventLacks,
    NoSchema,
    NotLockable,
    NotReopened,
    NotUnderstood,
    NoWholeLine,
    OfSearch,
    OfSubmission,
    OtherKind,
    OtherRunner,
    ResultsUnwritable,
    SampleTwice,
    UnusableRecord,
)
from envkit.common import atomic, codec, documents, files
from envkit.common.errors import MISFITS, InputError
from envkit.common.file_messages import LargerThan, ManyValues
from envkit.common.messages import OtherSchema, Unreadable, Unwritable
from envkit.messages import Message, MessageError, message_of

FILE_NAME = "record.jsonl"
# In the folder of a search by `envkit tune`: the folder of the run that measured what it found.
CONFIRMATION = "confirmation"
SCHEMA = 2
# The digest of what an event of a record can hold (tests/cli/test_other_schema.py). It changes with the number.
SHAPE = "70cf6af6cecb8175"
PART = 2**20  # bytes that are read at once
# Events of which each is one measurement.
MEASURED = ("sample", "trial")
Event = dict[str, Any]


class RecordFull(MessageError):
    """An event could not be written to the record in ``folder``. Everything written before is safe."""

    def __init__(self, folder: Path, reason: str | None) -> None:
        super().__init__(Unwritable(str(folder / FILE_NAME), str(reason)))
        self.folder = folder


class Record:
    """An open record. Exclusive: a second runner on the same folder is refused."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @staticmethod
    def create(folder: Path) -> Record:
        """Make ``folder`` and an empty record in it.

        Raises InputError if there is one already, no permission or a bad key.

        A record without a whole line is that of a run that was killed before it began, and is begun anew.
        """
        seal.require_sound_key()
        path = folder / FILE_NAME
        try:
            atomic.make_private(folder)
            descriptor = atomic.open_file(path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
            os.fchmod(descriptor, 0o600)  # whatever the umask, and whoever made the file
        except OSError as error:
            raise InputError(ResultsUnwritable(str(folder), files.reason(error))) from None
        record = Record(path, _locked(descriptor, path))
        if is_begun(folder):
            os.close(descriptor)
            raise InputError(HoldsRun(str(path), shlex.quote(str(folder))))
        os.ftruncate(descriptor, 0)
        _flush_names(folder)
        return record

    @staticmethod
    def reopen(folder: Path) -> Record:
        """Open the record of an earlier run for appending, without the half line that a kill may have left."""
        path = folder / FILE_NAME
        try:
            descriptor = files.open_descriptor(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise InputError(NotReopened(str(folder), path.name, files.reason(error))) from None
        record = Record(path, _locked(descriptor, path))
        os.ftruncate(descriptor, files.whole_lines(descriptor))
        return record

    def append(self, event: str, **fields: object) -> Event:
        """Write one line with the time (seconds since 1970) and have it on disk before returning.

        Raises RecordFull, with the file as it was before, if it can't be written.
        """
        return self._write(_event(event, fields))

    def append_sealed(self, event: str, bound_to: Event | None = None, /, **fields: object) -> Event:
        """Append an event that decides what a resumed run starts, with the user's seal.

        ``bound_to`` is the record's first event, for a later one. Raise InputError if others may know the key.
        """
        return self._write(seal.sealed(_event(event, fields), bound_to[seal.KEY] if bound_to else None))

    def _write(self, document: Event) -> Event:
        line = (json.dumps(document) + "\n").encode()
        size = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            raise RecordFull(self.path.parent, error.strerror) from None
        return document

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)


def _event(kind: str, fields: Event) -> Event:
    return {"event": kind, "time": round(time.time(), 3), **fields}


def _locked(descriptor: int, path: Path) -> int:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise InputError(OtherRunner(str(path))) from None
    except OSError as error:  # some network file systems are mounted without locks
        os.close(descriptor)
        raise InputError(NotLockable(str(path), str(error.strerror))) from None
    return descriptor


def require_idle(folder: Path) -> None:
    """Raise InputError if another runner is writing to the record in ``folder``."""
    path = folder / FILE_NAME
    try:
        descriptor = files.open_descriptor(path)
    except OSError:  # whoever reads it says why
        return
    os.close(_locked(descriptor, path))


def _flush_names(folder: Path) -> None:
    """Have the name of a new file on disk too: flushing the file alone need not write its folder's entry."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(folder: Path, kind: str = "run", parse: Callable[[bytes], object] = documents.parse) -> list[Event]:
    """The events of a record in order. A last line that a kill cut short is left out.

    ``kind`` is the event that it must begin with: ``run``, ``tune`` or ``submit``. ``parse`` makes an event of a line,
    and raises ValueError for a damaged one. Raises InputError for a folder without such a record, a damaged line,
    or a record of another schema. Events of a kind that is not known are among those returned: readers pick the kinds
    that they know.
    """
    return _read(folder, kind, True, parse)


def first(folder: Path, kind: str = "run") -> Event:
    """The event that a record begins with. Raises InputError as ``read`` does, but looks at the first line only."""
    return _read(folder, kind, False, documents.parse)[0]


def split_command(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a recorded command line that are the kit's, and ``--`` with the user's command, if any."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at]], [*words[at:]]


def digest(folder: Path) -> str:
    """Return the SHA-256 of the record in ``folder``, as ``sha256sum`` prints it. Raise InputError."""
    path, checksum = folder / FILE_NAME, hashlib.sha256()
    try:
        with files.opened(path) as file:
            for part in iter(lambda: file.read(PART), b""):
                checksum.update(part)
    except OSError as error:
        raise InputError(Unreadable(str(path), files.reason(error), GIVE_RUN)) from None
    return checksum.hexdigest()


def is_begun(folder: Path) -> bool:
    """Return whether there is a record that can be gone on with: a run that was killed at once left no whole line."""
    try:
        with files.opened(folder / FILE_NAME) as file:
            return file.readline().endswith(b"\n")
    except OSError:
        return False


def is_search(folder: Path) -> bool:
    """Return whether the record in ``folder``, if there is one, is that of a search by ``envkit tune``."""
    return _begins(folder, b'{"event": "tune"')


def is_submission(folder: Path) -> bool:
    """Return whether ``folder`` has a record of ``envkit submit``, with a folder for each node."""
    return _begins(folder, b'{"event": "submit"')


def _begins(folder: Path, words: bytes) -> bool:
    try:
        with files.opened(folder / FILE_NAME) as file:
            return file.read(len(words)) == words
    except OSError:
        return False


def _read(folder: Path, kind: str, complete: bool, parse: Callable[[bytes], object]) -> list[Event]:
    path = folder / FILE_NAME
    try:
        with files.opened(path) as file:
            lines = _whole_lines(path, file)
            begins = next(lines, None)
            if begins is None:
                raise _unusable(path, NoWholeLine())
            first = _parsed(path, *begins, parse)
            _require_kind(path, first, kind)
            if type(first.get("schema")) is not int:
                raise _unusable(path, NoSchema())
            if first["schema"] != SCHEMA:
                raise InputError(OtherSchema.of(str(path), "record", first["schema"], SCHEMA))
            others = _each_once(path, lines, parse) if complete else ()
            numbered = [(1, first), *others]
    except OSError as error:
        raise InputError(Unreadable(str(path), files.reason(error), GIVE_RUN)) from None
    with reading(folder):
        _require_order(path, numbered)
    for number, event in numbered:
        _require_form(path, number, event)
    return [event for _, event in numbered]


def _whole_lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, but for a last one that was cut short. Raise InputError for too much of them."""
    size = values = 0
    for number, line in enumerate(file, start=1):
        size += len(line)
        values += documents.values(line)
        if size > files.MOST_OF_A_RECORD:  # it grows
            raise InputError(Unreadable(str(path), LargerThan(size, files.MOST_OF_A_RECORD), GIVE_RUN))
        if values > documents.MOST_VALUES:
            raise InputError(Unreadable(str(path), ManyValues(documents.MOST_VALUES), GIVE_RUN))
        if line.endswith(b"\n"):
            yield number, line[:-1]


def _each_once(
    path: Path, lines: Iterator[tuple[int, bytes]], parse: Callable[[bytes], object]
) -> Iterator[tuple[int, Event]]:
    """Yield the events of these lines. A measurement that stands there again, word for word, is left out.

    File systems, and whoever puts parts of a file together, can leave such lines: nothing is lost.
    """
    digests: set[bytes] = set()
    for number, line in lines:
        event = _parsed(path, number, line, parse)
        if event["event"] in MEASURED:
            digest = hashlib.sha256(line).digest()
            if digest in digests:
                continue
            digests.add(digest)
        yield number, event


def _parsed(path: Path, number: int, line: bytes, parse: Callable[[bytes], object]) -> Event:
    try:
        event = parse(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or (number > 1 and not isinstance(event.get("event"), str)):
        raise InputError(UnusableRecord(str(path), DamagedLine(), number))
    return event


def _require_form(path: Path, number: int, event: Event) -> None:
    """Raise InputError for an event with a value of another type than runs write. Values that are missing are not."""
    if (kind := EVENTS.get(event["event"])) is not None:
        try:
            codec.require(event, kind)
        except codec.Misfit as error:
            raise InputError(UnusableRecord(str(path), NotUnderstood(error.message), number)) from None


def _require_kind(path: Path, first: Event, kind: str) -> None:
    """Raise InputError unless the ``first`` event of a record is of this ``kind``."""
    if first.get("event") == "tune" and kind == "run":
        raise _unusable(path, OfSearch(str(path.parent / CONFIRMATION)))
    if first.get("event") == "submit" and kind == "run":
        raise _unusable(path, OfSubmission())
    if first.get("event") != kind:
        raise _unusable(path, OtherKind(kind))


def _require_order(path: Path, numbered: Sequence[tuple[int, Event]]) -> None:
    """Raise InputError for two samples in one place, or measurements in another order than that of a run.

    It goes from block to block, and from the first again where it was resumed, as one may lack a sample; and it ends.
    """
    block, ended, places = -1, False, dict[tuple[int, str], int]()
    for number, event in numbered:
        kind, at, arm = event["event"], event.get("block"), event.get("arm")
        if kind == "resume":
            block, ended = -1, False
        elif kind == "end":
            ended = True
        elif kind in MEASURED and (ended or (isinstance(at, int) and at < block)):
            misplaced = AfterEnd(kind) if ended else AfterBlock(kind, block + 1)
            raise InputError(UnusableRecord(str(path), misplaced, number))
        elif kind == "sample" and isinstance(at, int) and isinstance(arm, str):
            block, first = at, places.setdefault((at, arm), number)
            if first != number:
                raise InputError(UnusableRecord(str(path), SampleTwice(arm, at + 1, first), number))


def _unusable(path: Path, problem: Message) -> InputError:
    return InputError(UnusableRecord(str(path), problem))


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Raise InputError if the record in ``folder`` lacks what is looked for in it, or has something else there."""
    try:
        yield
    except KeyError as error:
        raise _unusable(folder / FILE_NAME, EventLacks(str(error))) from error
    except InputError:
        raise
    except (MessageError, *MISFITS) as error:
        raise _unusable(folder / FILE_NAME, NotUnderstood(message_of(error))) from error
