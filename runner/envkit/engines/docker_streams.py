"""The streams of a container's worker: the daemon passes on its stdin, and the stdout of one that is started ahead.

The daemon closes a container's stdin as soon as this process is gone.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import TYPE_CHECKING

from envkit.worker.measure import turn

if TYPE_CHECKING:
    from docker.models.containers import Container

READ_BYTES = 2**16
HEADER_BYTES = 8  # of a frame: the stream's number, three zeros, and the length of what follows


class Streams:
    """The stdin of a ``container`` that was made and is not started yet; if it ``waits`` for a turn, the stdout too."""

    def __init__(self, container: Container, waits: bool) -> None:
        self._stdin = _Stream(container, "stdin")
        self._stdout = _Stream(container, "stdout") if waits else None
        self._frames = b""

    def is_ready(self, wait_s: float) -> bool:
        """Whether the worker waits for its turn. It is waited for ``wait_s`` seconds at most."""
        assert self._stdout is not None, "it was started ahead"
        self._frames += self._stdout.read(wait_s)
        if turn.after_ready(content(self._frames)) is None:
            return False
        self._stdout.close()  # else the daemon has the worker wait once so much has not been read
        return True

    def write(self, text: bytes) -> None:
        """Write to its stdin."""
        with contextlib.suppress(OSError):  # it has ended
            self._stdin.socket.sendall(text)

    def close(self) -> None:
        self._stdin.close()
        if self._stdout is not None:
            self._stdout.close()


class _Stream:
    """One stream of a container: the connection is handed over to it."""

    def __init__(self, container: Container, name: str) -> None:
        # to be kept: the connection ends with it
        self._file = container.client.api.attach_socket(container.id, params={name: 1, "stream": 1})
        # Docker's package wraps the socket, but for an address with encryption
        self.socket: socket.socket = getattr(self._file, "_sock", self._file)

    def read(self, wait_s: float) -> bytes:
        """Return what has come within ``wait_s`` seconds, if anything has."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        found = b""
        if poll.poll(wait_s * 1000):
            with contextlib.suppress(OSError):
                found = self.socket.recv(READ_BYTES)
            if not found:  # the container has ended, and the daemon is about to know
                time.sleep(wait_s)
        return found

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the other end may have closed it
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self._file.close()


def content(frames: bytes) -> bytes:
    """Return what was printed, from the frames of the daemon's answer (https://docs.docker.com/reference/api/engine/)."""
    found = b""
    while len(frames) > HEADER_BYTES:
        end = HEADER_BYTES + int.from_bytes(frames[4:HEADER_BYTES], "big")
        found += frames[HEADER_BYTES:end]
        frames = frames[end:]
    return found
