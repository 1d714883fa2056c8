"""Telling people from their background: DeepLabV3 on generated pictures, pixel by pixel.

Batches of 12 pictures, 3 x 64 x 64 in memory; cross-entropy of every pixel; SGD with learning rate 0.05, momentum 0.9
and weight decay 1e-4. A scale makes batches larger. Tested on 64 other pictures: the share of the pixels that are
right, and the mean over both classes of intersection over union (mIoU). Batches are normalised (batch norm): of several
ranks each does so over its own part of a batch, and so learns a little otherwise than one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envkit.worker import distributed, modes, people
from envkit.worker.modes import USUAL, Network, Options
from envkit.worker.workloads import digests

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray
    from torch import Tensor

SEED = 42
BATCH = 12
PICTURES, TEST_PICTURES = 1024, 64
TEST_BATCH = 16


class Training:
    """One training job, ready to step."""

    unit = "images"

    def __init__(self, options: Options) -> None:
        import torch

        from envkit.worker.networks import deeplab

        drawn = people.draw(PICTURES, SEED)
        test = people.draw(TEST_PICTURES, SEED + 1)
        torch.manual_seed(SEED)
        self._torch = torch
        self._generator = torch.Generator().manual_seed(SEED)
        self._kept = (drawn, test)  # freed, they would raise glibc's threshold too
        self._images, self._masks = _tensors(*drawn)
        self._test_images, self._test_masks = _tensors(*test)
        model = deeplab.DeepLab(len(people.CLASSES))
        weights = digests.of_weights(model)
        self.network = Network(model, options)
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
        self._order: Tensor
        self._next = 0
        self.images_per_step = BATCH * options.scale
        self.steps_per_epoch = PICTURES // self.images_per_step
        files = (__file__, distributed.__file__, modes.__file__)
        self.digests = {
            "code": digests.of_code(options, *files, people.__file__, str(deeplab.__file__)),
            "data": digests.of_arrays([*drawn, *test]),
            "initial_weights": weights,
        }

    def step(self) -> float:
        """Train on the next batch, reshuffling at each epoch's start, and return the loss."""
        if self._next % self.steps_per_epoch == 0:
            self._order = self._torch.randperm(PICTURES, generator=self._generator)
            self._next = 0
        size = self.images_per_step
        batch = self._order[self._next * size : (self._next + 1) * size]
        self._next += 1
        self._optimizer.zero_grad()
        part = distributed.share(batch)
        scores = self._full_size(self.network(self.network.laid_out(self._images[part])))
        loss = self._torch.nn.functional.cross_entropy(scores, self._masks[part])
        loss = distributed.weighted(loss, len(part), len(batch))
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch has no types for it
        self._optimizer.step()
        return float(loss.item())

    def quality(self) -> dict[str, object]:
        """``pixel accuracy`` and ``mIoU``, each from 0 to 1."""
        classes = len(people.CLASSES)
        counts = self._torch.zeros(classes * classes, dtype=self._torch.int64)
        self.network.model.eval()
        with self._torch.no_grad():
            for first in range(0, TEST_PICTURES, TEST_BATCH):
                images = self.network.laid_out(self._test_images[first : first + TEST_BATCH])
                predicted = self._full_size(self.network.test(images)).argmax(1)
                true = self._test_masks[first : first + TEST_BATCH]
                counts += self._torch.bincount((classes * true + predicted).flatten(), minlength=classes * classes)
        self.network.model.train()
        return scores_of(counts.reshape(classes, classes).tolist())

    def _full_size(self, scores: Tensor) -> Tensor:
        size = (people.SIZE, people.SIZE)
        return self._torch.nn.functional.interpolate(scores, size=size, mode="bilinear", align_corners=False)


def scores_of(counts: list[list[int]]) -> dict[str, object]:
    """The figures from ``counts``: how many pixels of each class (rows) were taken for which (columns)."""
    total = sum(map(sum, counts))
    right = sum(row[number] for number, row in enumerate(counts))
    shares = []
    for number, row in enumerate(counts):
        union = sum(row) + sum(other[number] for other in counts) - row[number]
        shares.append(row[number] / union if union else 1.0)
    return {"pixel accuracy": right / total, "mIoU": sum(shares) / len(shares)}


def _tensors(pictures: NDArray[uint8], masks: NDArray[uint8]) -> tuple[Tensor, Tensor]:
    """Pictures as float32 about 0, and masks as int64, written where they stay: no larger block is freed again."""
    import torch

    images = torch.empty(pictures.shape, dtype=torch.float32)
    images.copy_(torch.from_numpy(pictures)).sub_(127.5).div_(64)
    labels = torch.empty(masks.shape, dtype=torch.int64)
    return images, labels.copy_(torch.from_numpy(masks))


def prepare(data: str, options: Options = USUAL) -> Training:
    """Draw the pictures, build the network and be ready to step; ``data`` is always what is generated here."""
    return Training(options)
