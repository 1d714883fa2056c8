"""Training that waits for its input: PNG pictures that DataLoader workers decode and transform on the fly.

Each picture (224 x 224, RGB) is cut out at a place of its own, mirrored or not, and made smaller to 64 x 64; a network
of three convolutions then tells which of 8 patterns it shows, with SGD (learning rate 0.05, momentum 0.9). A network so
small trains faster than one worker decodes. What is cut out follows from the seed and the picture's place in the run,
so the number of workers changes how long it takes and nothing that is learnt.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from envkit.worker import modes, png
from envkit.worker.modes import USUAL, Network, Options
from envkit.worker.workloads import digests

if TYPE_CHECKING:
    from hashlib import _Hash

    from numpy import uint8
    from numpy.typing import NDArray
    from torch import Tensor
    from torch.utils.data import DataLoader, Dataset

    Item = tuple[Tensor, int]

SEED = 42
PICTURES, TEST_PICTURES = 160, 32
SIZE, CUT, SMALL = 224, 192, 64
# In pixels, from stripe to stripe; stripes go down or across. Mirrored, a pattern is the same.
PERIODS = (22.0, 38.0, 66.0, 114.0)
PATTERNS = 2 * len(PERIODS)
NOISE = 24
# How many images a sample of one of the grid's cells has, whatever its batches.
CELL_IMAGES = 1536
NAME = re.compile(r"loader-w(\d{1,3})-b([1-9]\d{0,3})(?:-p([1-9]\d{0,2}))?(-pin)?")


@dataclass(frozen=True)
class Settings:
    """The arguments of DataLoader. ``prefetch`` is how many batches each worker makes ahead; 0 without a worker.

    ``pin`` copies batches into memory that an accelerator reads directly; without one it does nothing.
    """

    workers: int = 2
    batch: int = 48
    prefetch: int = 2
    pin: bool = False

    @property
    def workload(self) -> str:
        """The name of the workload with just these settings, as ``loader-w2-b32-p2``."""
        prefetch = f"-p{self.prefetch}" if self.workers else ""
        return f"loader-w{self.workers}-b{self.batch}{prefetch}{'-pin' if self.pin else ''}"

    @property
    def cell_steps(self) -> int:
        return max(1, CELL_IMAGES // self.batch)


def settings_of(workload: str) -> Settings | None:
    """The settings in a workload's name (``loader-w4-b64-p2-pin``); None for a name that has none, or can't be."""
    match = NAME.fullmatch(workload)
    if match is None:
        return None
    workers = int(match[1])
    if match[3] is not None and not workers:
        return None
    return Settings(workers, int(match[2]), int(match[3] or 2) if workers else 0, match[4] is not None)


class Pictures:
    """The files that workers share, and how each becomes an image of 3 x SMALL x SMALL."""

    def __init__(self, files: list[bytes], labels: list[int]) -> None:
        self._files, self._labels = files, labels

    def __getitem__(self, key: tuple[int, int]) -> Item:
        """``key``: which picture, and its place in the run (below 0: cut from the middle, and never mirrored)."""
        number, place = key
        image = png.decode(self._files[number])
        if place < 0:
            top = left = (SIZE - CUT) // 2
            mirrored = False
        else:
            chance = random.Random(SEED * 1_000_003 + place)
            top, left = chance.randrange(SIZE - CUT + 1), chance.randrange(SIZE - CUT + 1)
            mirrored = chance.random() < 0.5
        cut = image[top : top + CUT, left : left + CUT]
        return _image(cut[:, ::-1] if mirrored else cut), self._labels[number]


class Batches:
    """Endless batches of ``Pictures``' keys, every picture once before any comes again."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        place = 0
        unused: list[int] = []
        chance = random.Random(SEED)
        while True:
            batch: list[tuple[int, int]] = []
            while len(batch) < self._size:
                if not unused:
                    unused = list(range(PICTURES))
                    chance.shuffle(unused)
                batch.append((unused.pop(), place))
                place += 1
            yield batch


class Training:
    """One training job, ready to step; DataLoader's workers start with the first step."""

    unit = "images"

    def __init__(self, options: Options, settings: Settings) -> None:
        import torch
        from torch import nn

        data = hashlib.sha256()
        files, labels = _drawn(PICTURES, SEED, data)
        self._test, self._test_labels = _drawn(TEST_PICTURES, SEED + 1, data)
        torch.manual_seed(SEED)
        self._torch = torch
        model = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(64, PATTERNS),
        )  # fmt: skip
        weights = digests.of_weights(model)
        self.network = Network(model, options)
        self._loss = nn.CrossEntropyLoss()
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.images_per_step = settings.batch * options.scale
        self.steps_per_epoch = max(1, PICTURES // self.images_per_step)
        workers = settings.workers * options.scale
        self._loader = _loader(Pictures(files, labels), Batches(self.images_per_step), settings, workers)
        self._batches: Iterator[tuple[Tensor, Tensor]] | None = None
        self.digests = {
            "code": digests.of_code((settings, options), __file__, png.__file__, modes.__file__),
            "data": data.hexdigest(),
            "initial_weights": weights,
        }

    def step(self) -> float:
        """Wait for the next batch, train on it, and return the loss."""
        if self._batches is None:
            self._batches = iter(self._loader)
        images, labels = next(self._batches)
        self._optimizer.zero_grad()
        loss = self._loss(self.network(self.network.laid_out(images)), self.network.placed(labels))
        loss.backward()
        self._optimizer.step()
        return float(loss.item())

    def quality(self) -> dict[str, object]:
        """``accuracy``: the share of the test pictures whose pattern is told rightly, from 0 to 1."""
        pictures = Pictures(self._test, self._test_labels)
        images = self._torch.stack([pictures[number, -1][0] for number in range(TEST_PICTURES)])
        with self._torch.no_grad():
            predicted = self.network.test(self.network.laid_out(images)).argmax(1)
        right = int((predicted == self._torch.tensor(self._test_labels)).sum())
        return {"accuracy": right / TEST_PICTURES}


def _loader(pictures: Pictures, batches: Batches, settings: Settings, workers: int) -> DataLoader[Item]:
    """Workers are forked, whatever a Python does by itself: they share the pictures, and start at once."""
    from torch.utils.data import DataLoader

    data_set = cast("Dataset[Item]", pictures)  # which needs no base class that torch would have to be imported for
    if not workers:
        return DataLoader(data_set, batch_sampler=batches, pin_memory=settings.pin)
    return DataLoader(
        data_set, batch_sampler=batches, pin_memory=settings.pin, num_workers=workers,
        prefetch_factor=settings.prefetch, multiprocessing_context="fork",
    )  # fmt: skip


def _image(cut: NDArray[uint8]) -> Tensor:
    """float32, 3 x SMALL x SMALL, about 0, from uint8, CUT x CUT x 3."""
    import numpy
    import torch

    pixels = torch.from_numpy(numpy.ascontiguousarray(cut)).permute(2, 0, 1)[None].float()
    size = (SMALL, SMALL)
    small = torch.nn.functional.interpolate(pixels, size=size, mode="bilinear", align_corners=False)
    return small[0].sub_(127.5).div_(64)


def _drawn(count: int, seed: int, digest: _Hash) -> tuple[list[bytes], list[int]]:
    """Files, and which pattern each shows: stripes with noise. ``digest`` is told their pixels.

    Files are no part of it: another zlib writes the same picture in another way. Stripes are no sines, whose last bit
    depends on the processor, as that of sums and products does not (IEEE 754).
    """
    import numpy

    chance = numpy.random.default_rng(seed)
    picture: NDArray[uint8] = numpy.empty((SIZE, SIZE, png.CHANNELS), dtype=numpy.uint8)
    labels = [number % PATTERNS for number in range(count)]
    files = []
    for label in labels:
        period = PERIODS[label // 2]
        at = numpy.arange(SIZE) + float(chance.uniform(0, period))
        waves = abs(at % period * (4 / period) - 2) - 1
        for channel in range(png.CHANNELS):
            middle, height = float(chance.uniform(80, 175)), float(chance.uniform(30, 60))
            stripes = (middle + height * waves).astype(numpy.int16)
            noise = chance.integers(-NOISE, NOISE + 1, size=(SIZE, SIZE), dtype=numpy.int8)
            picture[:, :, channel] = numpy.clip((stripes[:, None] if label % 2 else stripes) + noise, 0, 255)
        digest.update(picture.data)
        files.append(png.encode(picture))
    return files, labels


def prepare(data: str, options: Options = USUAL, settings: Settings = Settings()) -> Training:
    """Draw the pictures, build the network and be ready to step; ``data`` is always what is generated here."""
    return Training(options, settings)
