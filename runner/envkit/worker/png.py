"""Pictures as PNG: what it takes to write one, and to read it back, with the standard library and numpy.

Of the format (Portable Network Graphics Specification, third edition, W3C 2025) there is what most files have: 8-bit
RGB without interlace, in lines that are stored as they are, or as differences from the pixel before (Sub) or from the
line above (Up).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from envkit.worker.errors import WorkerError
from envkit.worker.messages import DamagedPng, NotAPng, OtherPng

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = 3
# The fields of IHDR after width and height: 8 bits, RGB, deflate, the standard's filters, no interlace.
KIND = bytes((8, 2, 0, 0, 0))
NONE, SUB, UP = 0, 1, 2
# Of zlib: the fastest.
LEVEL = 1


def encode(picture: NDArray[uint8]) -> bytes:
    """``picture`` (uint8, height x width x 3) as a file whose lines are differences from pixel to pixel."""
    import numpy

    height, width, _ = picture.shape
    differences = picture.copy()
    differences[:, 1:] -= picture[:, :-1]
    lines = numpy.empty((height, 1 + width * CHANNELS), dtype=numpy.uint8)
    lines[:, 0] = SUB
    lines[:, 1:] = differences.reshape(height, -1)
    header = struct.pack(">II", width, height) + KIND
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.data, LEVEL)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, data) for name, data in chunks)


def decode(content: bytes) -> NDArray[uint8]:
    """Return the picture in a file: uint8, height x width x 3. Raise WorkerError if it can't be read."""
    import numpy

    if not content.startswith(SIGNATURE):
        raise WorkerError(NotAPng())
    header, body = b"", b""
    for name, data in _chunks(content):
        if name == b"IHDR":
            header = data
        elif name == b"IDAT":
            body += data
    if header[8:] != KIND:
        raise WorkerError(OtherPng())
    width, height = struct.unpack(">II", header[:8])
    try:
        lines = numpy.frombuffer(zlib.decompress(body, bufsize=height * (1 + width * CHANNELS)), dtype=numpy.uint8)
    except zlib.error as error:
        raise WorkerError(DamagedPng(reason=str(error))) from None
    if lines.size != height * (1 + width * CHANNELS):
        raise WorkerError(DamagedPng())
    lines = lines.reshape(height, 1 + width * CHANNELS)
    filters, stored = lines[:, 0], lines[:, 1:].reshape(height, width, CHANNELS)
    if (filters == SUB).all():
        return numpy.cumsum(stored, axis=1, dtype=numpy.uint8)
    return _line_by_line(filters, stored)


def _line_by_line(filters: NDArray[uint8], stored: NDArray[uint8]) -> NDArray[uint8]:
    import numpy

    picture = numpy.empty(stored.shape, dtype=numpy.uint8)
    above = numpy.zeros(stored.shape[1:], dtype=numpy.uint8)
    for line, kind, values in zip(picture, filters, stored):
        if kind == SUB:
            line[:] = numpy.cumsum(values, axis=0, dtype=numpy.uint8)
        elif kind == UP:
            line[:] = values + above
        elif kind == NONE:
            line[:] = values
        else:
            raise WorkerError(OtherPng(int(kind)))
        above = line
    return picture


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each; a last one that was cut short is left out."""
    at = len(SIGNATURE)
    while at + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, at)
        data_ends = at + 8 + length
        if data_ends + 4 > len(content):
            return
        (checksum,) = struct.unpack_from(">I", content, data_ends)
        if checksum != zlib.crc32(content[at + 4 : data_ends]):
            raise WorkerError(DamagedPng(at))
        yield content[at + 4 : at + 8], content[at + 8 : data_ends]
        at = data_ends + 4
