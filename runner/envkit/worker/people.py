"""A generated set of pictures to segment: people-like shapes on backgrounds, and for each pixel whether it is one.

Everything follows from the seed: nothing is downloaded. Pictures are drawn one by one with small arrays, because glibc
raises its mmap threshold for good when a larger block is freed (mallopt(3), M_MMAP_THRESHOLD): that would hide what an
allocator profile is worth to the training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float32, uint8
    from numpy.random import Generator
    from numpy.typing import NDArray

SIZE = 64
CLASSES = ("background", "person")
MOST_PEOPLE, OBJECTS = 2, 4
# Half of a head's height, as a share of its person's.
HEAD = 0.09
NOISE = 12


def draw(count: int, seed: int) -> tuple[NDArray[uint8], NDArray[uint8]]:
    """``count`` pictures (uint8, N x 3 x SIZE x SIZE) and their masks (uint8, N x SIZE x SIZE; 1 is a person)."""
    import numpy

    random = numpy.random.default_rng(seed)
    pictures: NDArray[uint8] = numpy.empty((count, 3, SIZE, SIZE), dtype=numpy.uint8)
    masks: NDArray[uint8] = numpy.empty((count, SIZE, SIZE), dtype=numpy.uint8)
    rows, columns = numpy.mgrid[0:SIZE, 0:SIZE].astype(numpy.float32)
    for picture, mask in zip(pictures, masks):
        _background(random, picture, rows, columns)
        mask[:] = 0
        for _ in range(int(random.integers(1, MOST_PEOPLE + 1))):
            _person(random, picture, mask, rows, columns)
        noise = random.integers(-NOISE, NOISE + 1, size=picture.shape, dtype=numpy.int16)
        picture[:] = numpy.clip(picture + noise, 0, 255)
    return pictures, masks


def _background(random: Generator, picture: NDArray[uint8], rows: NDArray[float32], columns: NDArray[float32]) -> None:
    """Two colours that run into each other, and boxes before them whose colours a person may have as well."""
    first, second = random.uniform(0, 255, size=(2, 3)).tolist()
    along = random.random()
    share = (along * rows + (1 - along) * columns) / (SIZE - 1)
    for channel in range(3):
        picture[channel] = first[channel] + (second[channel] - first[channel]) * share
    for _ in range(OBJECTS):
        top, left = random.integers(0, SIZE, size=2)
        height, width = random.integers(4, SIZE // 3, size=2)
        picture[:, top : top + height, left : left + width] = random.integers(0, 256, size=(3, 1, 1))


def _person(
    random: Generator,
    picture: NDArray[uint8],
    mask: NDArray[uint8],
    rows: NDArray[float32],
    columns: NDArray[float32],
) -> None:
    """A head, a body with two arms, and two legs; a part of it may be outside of the picture."""
    height = random.uniform(0.5, 1.0) * SIZE
    middle, top = random.uniform(0.15, 0.85) * SIZE, random.uniform(-0.1, 0.4) * SIZE
    lean, stance = random.uniform(-0.06, 0.06), random.uniform(0.04, 0.09)
    skin = (random.integers(120, 256), random.integers(70, 190), random.integers(40, 150))
    clothes, trousers = random.integers(0, 256, size=(2, 3))
    y = (rows - top) / height
    x = (columns - middle) / height - lean * y
    arms = (abs(abs(x) - 0.15 - 0.1 * (y - 0.2)) < 0.03) & (y > 0.19) & (y < 0.5)
    legs = (abs(abs(x) - stance) < 0.05) & (y >= 0.52) & (y < 1)
    body = (abs(x) < 0.14 - 0.04 * (y - 0.2)) & (y > 0.18) & (y < 0.54)
    head = (x / 0.8) ** 2 + (y - HEAD) ** 2 < HEAD**2
    for part, colour in ((arms, skin), (legs, trousers), (body, clothes), (head, skin)):
        for channel in range(3):
            picture[channel][part] = colour[channel]
        mask[part] = 1
