"""PNG files: what is written can be read by others, and what others write can be read."""

from __future__ import annotations

import io
import struct
import zlib

import numpy
import pytest
from envkit.worker import png

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
    with pytest.raises(ValueError, match="is no PNG"):
        png.decode(b"GIF89a" + content)
    with pytest.raises(ValueError, match="checksum"):
        png.decode(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    with pytest.raises(ValueError, match="damaged PNG"):
        png.decode(content[:50])
    with pytest.raises(ValueError, match="another kind"):
        png.decode(file_of((b"IHDR", struct.pack(">II", 7, 9) + bytes((16, 2, 0, 0, 0)))))
    with pytest.raises(ValueError, match="filter 4"):
        png.decode(filtered(picture, (4,)))
    short = (b"IHDR", struct.pack(">II", 7, 10) + png.KIND), (b"IDAT", zlib.compress(bytes(9 * 22)))
    with pytest.raises(ValueError, match="more or less than its pixels"):
        png.decode(file_of(*short))
