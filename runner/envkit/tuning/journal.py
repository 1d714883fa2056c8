"""The file in which nodes share what they know: a line of JSON for each thing said, which is appended under a lock.

It is a backend of Optuna's JournalStorage, whose own one takes a node that was killed badly: the half line that it may
have left spoils the next one, and all nodes then fail; and of two that take an abandoned lock away at once the second
one takes that of the first, which fails when it comes to give it back.

The lock is a symbolic link, as network file systems make one for one node alone. It leads nowhere: its text says
whose it is. So no clock and no file's time has a part in it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from optuna.storages.journal import BaseJournalBackend

from envkit.common import atomic, documents, files
from envkit.common.errors import InputError
from envkit.tuning.messages import DamagedJournal, JournalUnusable, NoLinks

# A lock is held for some milliseconds. One that somebody has for so long belongs to a node that was killed.
ABANDONED_S = 30.0
LONGEST_PAUSE_S = 1.0
# Why a file system makes no symbolic links.
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)


class Journal(BaseJournalBackend):
    """The journal in ``path``, which is made where it is not there. Raises InputError where it can't be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines_at = [0]  # where each line begins, of those that were read, and the next one
        try:
            os.close(atomic.open_file(path, os.O_CREAT | os.O_RDWR))
        except OSError as error:
            raise self._unusable(error) from None

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, object]]:
        """Yield the entries from that line on. A last line that has no end is just being written, or was cut short."""
        try:
            with files.opened(self._path) as file:
                file.seek(self._lines_at[log_number_from])
                *lines, _ = file.read(files.MOST_OF_A_RECORD).split(b"\n")
        except OSError as error:
            raise self._unusable(error) from None
        del self._lines_at[log_number_from + 1 :]
        for line in lines:
            try:
                entry = documents.parse(line)
            except ValueError:
                raise InputError(DamagedJournal(str(self._path), len(self._lines_at))) from None
            self._lines_at.append(self._lines_at[-1] + len(line) + 1)
            yield entry

    def append_logs(self, logs: Iterable[dict[str, object]]) -> None:
        """Have it on disk before returning; where that fails, the file is as it was before."""
        text = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in logs)
        with self._lock():
            try:
                self._append(text)
            except OSError as error:
                raise self._unusable(error) from None

    def _append(self, text: bytes) -> None:
        descriptor = files.open_descriptor(self._path, os.O_RDWR | os.O_APPEND)
        try:
            size = files.whole_lines(descriptor)
            if size < os.fstat(descriptor).st_size:  # the half line of a node that was killed
                os.ftruncate(descriptor, size)
            try:
                written = 0
                while written < len(text):
                    written += os.write(descriptor, text[written:])
                os.fsync(descriptor)
            except OSError:  # a whole line stays otherwise, as others may have read it
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        link = self._path.with_name(f"{self._path.name}.lock")
        token = secrets.token_hex(8)
        try:
            self._wait_for(link, token)
            yield
        finally:
            if _holder(link) == token:  # whoever was suspended for long may have lost it
                link.unlink(missing_ok=True)

    def _wait_for(self, link: Path, token: str) -> None:
        # each has another patience: of several that wait for an abandoned lock one is first to take it away
        patience_s = ABANDONED_S * random.uniform(1.0, 1.5)
        previous, since, pause_s = "", time.monotonic(), 0.001
        while True:
            try:
                link.symlink_to(token)
                return
            except FileExistsError:
                pass
            except OSError as error:
                if error.errno in NO_LINKS:
                    raise InputError(NoLinks(str(link.parent), str(error.strerror))) from None
                raise self._unusable(error) from None
            holder = _holder(link)
            if holder == token:  # the server made the link, and its first answer was lost
                return
            if holder != previous:
                previous, since = holder, time.monotonic()
            elif time.monotonic() - since > patience_s and _holder(link) == previous:
                link.unlink(missing_ok=True)
            time.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _unusable(self, error: OSError) -> InputError:
        go_on = ("envkit", "tune", "--resume", str(self._path.parent))
        return InputError(JournalUnusable(str(self._path), files.reason(error), go_on))


def _holder(link: Path) -> str:
    """Return whose lock it is; empty where it is nobody's."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""
