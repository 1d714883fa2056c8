"""Fashion-MNIST's four IDX files: checking, mapping into memory, and a synthetic stand-in of the same shapes.

IDX is big-endian: a magic number whose last byte is the number of dimensions, each dimension's size, then the bytes.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from envkit.worker.errors import WorkerError
from envkit.worker.messages import NotPublished, UnusableFile

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray

# Of the decompressed files, because distributors compress them differently.
SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
SYNTHETIC = "synthetic"
SYNTHETIC_SEED = 20170828
CLASSES = 10


def mismatch(name: str, content: bytes | mmap.mmap) -> NotPublished | None:
    """Return a message if ``content`` (anything with the buffer interface) is not the published file ``name``."""
    digest = hashlib.sha256(content).hexdigest()
    if digest == SHA256[name]:
        return None
    return NotPublished(digest[:12], SHA256[name][:12])


def load(data: str) -> tuple[dict[str, NDArray[uint8]], str]:
    """All four arrays (uint8; images N x 28 x 28, labels N) and one digest of their bytes.

    ``data`` is a folder of the decompressed files, or ``synthetic``. The files are mapped, not read: glibc raises its
    mmap threshold for good when a block of up to 32 MiB is freed (mallopt(3), M_MMAP_THRESHOLD), so a buffer that is
    read into or decompressed here and then freed would hide what an allocator profile is worth to the training.

    Raises WorkerError if a file is not the published one.
    """
    arrays = synthetic() if data == SYNTHETIC else {name: _mapped(Path(data) / name) for name in SHA256}
    digest = hashlib.sha256()
    for name in SHA256:
        digest.update(arrays[name].data)
    return arrays, digest.hexdigest()


def _mapped(path: Path) -> NDArray[uint8]:
    import numpy

    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reason = mismatch(path.name, content)
    if reason:
        raise WorkerError(UnusableFile(str(path), reason))
    dimensions = content[3]
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    return numpy.frombuffer(content, dtype=numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)


def synthetic() -> dict[str, NDArray[uint8]]:
    """A seeded set of the real one's shapes: one random template per class, plus noise, so that it can be learnt."""
    import numpy

    generator = numpy.random.default_rng(SYNTHETIC_SEED)
    templates = generator.integers(0, 200, size=(CLASSES, 28, 28), dtype=numpy.uint8)
    arrays = {}
    for prefix, count in (("train", 60_000), ("t10k", 10_000)):
        labels = generator.integers(0, CLASSES, size=count, dtype=numpy.uint8)
        noise = generator.integers(0, 56, size=(count, 28, 28), dtype=numpy.uint8)
        arrays[f"{prefix}-images-idx3-ubyte"] = templates[labels] + noise
        arrays[f"{prefix}-labels-idx1-ubyte"] = labels
    return arrays
