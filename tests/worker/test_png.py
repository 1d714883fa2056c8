"""PNG files: what is written can be read by others, and what others write can be read."""

from __future__ import annotations

import io
import struct
import zlib

import numpy
import pytest
from envkit.worker import png
from envkit.worker.errors import WorkerError
from envkit.worker.messages import DamagedPng, NotAPng, OtherPng

RANDOM = numpy.random.default_rng(3)


@pytest.fixture
def picture():
    return RANDOM.integers(0, 256, size=(9, 7, 3), dtype=numpy.uint8)


def filtered(picture, filters):
    """A file whose lines have these filters, one after the other and from the first again."""
    height, width, _ = picture.shape
    before = numpy.concatenate([numpy.zeros((height, 1, 3), numpy.uint8), picture[:, :-1]], axis=1)
    above = numpy.concatenate([numpy.zeros((1, width, 3), numpy.uint8), picture[:-1]])
    stored = {png.NONE: picture, png.SUB: picture - before, png.UP: picture - above}
    lines = [bytes([kind]) + stored.get(kind, picture)[line].tobytes()
             for line in range(height) for kind in [filters[line % len(filters)]]]  # fmt: skip
    header = struct.pack(">II", width, height) + png.KIND
    return file_of((b"IHDR", header), (b"tEXt", b"Comment\0none"), (b"IDAT", zlib.compress(b"".join(lines))))


def file_of(*chunks):
    parts = [struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
             for name, data in (*chunks, (b"IEND", b""))]  # fmt: skip
    return png.SIGNATURE + b"".join(parts)


def test_what_is_written_is_read_back(picture):
    assert numpy.array_equal(png.decode(png.encode(picture)), picture)


def test_another_program_reads_the_same(picture):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed here")
    assert numpy.array_equal(numpy.asarray(image.open(io.BytesIO(png.encode(picture)))), picture)


@pytest.mark.parametrize("filters", [(png.NONE,), (png.SUB,), (png.UP,), (png.UP, png.SUB, png.NONE)])
def test_lines_in_every_known_form(picture, filters):
    assert numpy.array_equal(png.decode(filtered(picture, filters)), picture)


def test_data_in_several_pieces(picture):
    packed = zlib.compress(zlib.decompress(png.encode(picture)[41:-16]))
    header = (b"IHDR", struct.pack(">II", 7, 9) + png.KIND)
    pieces = [(b"IDAT", packed[at : at + 5]) for at in range(0, len(packed), 5)]
    assert numpy.array_equal(png.decode(file_of(header, *pieces)), picture)


def test_what_can_not_be_read_says_why(picture):
    content = png.encode(picture)
    short = (b"IHDR", struct.pack(">II", 7, 10) + png.KIND), (b"IDAT", zlib.compress(bytes(9 * 22)))
    for file, problem in (
        (b"GIF89a" + content, NotAPng()),
        (content[:60] + bytes([content[60] ^ 1]) + content[61:], DamagedPng(position=33)),
        (file_of((b"IHDR", struct.pack(">II", 7, 9) + bytes((16, 2, 0, 0, 0)))), OtherPng()),
        (filtered(picture, (4,)), OtherPng(filter=4)),
        (file_of(*short), DamagedPng()),
    ):
        with pytest.raises(WorkerError) as caught:
            png.decode(file)
        assert caught.value.message == problem
    with pytest.raises(WorkerError) as caught:
        png.decode(content[:50])
    assert isinstance(caught.value.message, DamagedPng)
    assert caught.value.message.reason
