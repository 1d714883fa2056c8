"""The way to the terminal: all output passes one of two writers, which let nothing but text through to one.

Files and pipes get what is written unchanged. A program that is started with this process's terminal writes there
itself.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import IO, BinaryIO, TextIO

from envkit.common.printable import harmless


class Writer:
    """Standard output or standard error on a terminal: control characters are written as escapes such as ``\\x1b``."""

    def __init__(self, stream: TextIO) -> None:
        self.terminal = stream

    def write(self, text: str) -> int:
        """Write ``text``, and return its length: as many characters are done with."""
        self.terminal.write(harmless(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        attribute: object = getattr(self.terminal, name)
        return attribute


def guard() -> None:
    """Replace each standard stream that is a terminal by a writer, and have both streams take any character.

    A character that the stream's encoding lacks becomes an escape. LANG=C has ASCII alone, and UTF-8 lacks the bytes of
    file names that are not UTF-8.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        if stream is not None and not isinstance(stream, Writer) and stream.isatty():
            setattr(sys, name, Writer(stream))


def document(content: bytes) -> None:
    """Write a document of UTF-8 to standard output: byte for byte, but to a terminal as text."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    elif sys.stdout is not None:
        sys.stdout.write(content.decode())


def write_to_device(device: BinaryIO, content: bytes) -> None:
    """Write to an open pipe or device, to a terminal (``/dev/tty``, ``/dev/stdout``) as text. Raise OSError."""
    device.write(harmless(content.decode(errors="backslashreplace")).encode() if device.isatty() else content)


def terminal_of(stream: IO[str] | Writer) -> IO[str]:
    """Return the terminal behind the writer ``stream``, for a caller that writes colours and checks its text itself."""
    while True:
        behind = getattr(stream, "rich_proxied_file", None)  # a live view has one before the writer
        if behind is not None:
            stream = behind
        elif isinstance(stream, Writer):
            stream = stream.terminal
        else:
            return stream
