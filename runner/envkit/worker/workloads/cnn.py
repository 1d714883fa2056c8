"""A small convolutional network on Fashion-MNIST, from a book on accelerating PyTorch training.

Two convolutions (1-32 and 32-64 channels, 3x3, padding 1), each with ReLU and 2x2 max pooling, then linear layers
3136-512 and 512-10; cross-entropy; Adam with learning rate 1e-5 and weight decay 0.005; batches of 64 from 90% of
the 60,000 training images, which are normalised tensors in memory. The book's changes to the training itself are
variants of it: no bias in any layer, or larger batches. A scale makes batches larger too. A variant of the kit's own
trains it in two stages, where there are ranks for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from envkit.worker import distributed, fashion_mnist, modes, pipeline
from envkit.worker.modes import USUAL, Network, Options
from envkit.worker.pipeline import Pipeline
from envkit.worker.workloads import digests

if TYPE_CHECKING:
    from numpy import uint8
    from numpy.typing import NDArray
    from torch import Tensor

SEED = 42
PARAMETERS = 1_630_090
BIASES = 618  # 32 + 64 + 512 + 10 of them
TRAINING_SHARE = 0.9
# Mean and standard deviation of the training set's pixels, in units of the full range.
MEAN, DEVIATION = 0.2860, 0.3530
# How many layers the first of two stages has: all but the linear ones, where most of the parameters are.
CUT = 6


@dataclass(frozen=True)
class Variant:
    """A variant has a bias in its layers or none, and some number of images in a batch (the last may have fewer).

    One that is ``staged`` is trained by stages, in ranks of their own where there are several, and all its batches are
    full.
    """

    bias: bool = True
    batch: int = 64
    staged: bool = False

    @property
    def parameters(self) -> int:
        return PARAMETERS - (0 if self.bias else BIASES)


class Training:
    """One training job, ready to step. Images are float32 N x 1 x 28 x 28, labels int64 N."""

    unit = "images"

    def __init__(self, data: str, options: Options, variant: Variant) -> None:
        import torch
        from torch import nn

        arrays, data_digest = fashion_mnist.load(data)
        torch.manual_seed(SEED)
        self._torch = torch
        self._generator = torch.Generator().manual_seed(SEED)
        images = _normalised(arrays["train-images-idx3-ubyte"])
        labels = torch.from_numpy(arrays["train-labels-idx1-ubyte"].astype("int64"))
        training = torch.randperm(len(images), generator=self._generator)[: int(len(images) * TRAINING_SHARE)]
        self._images, self._labels = images[training], labels[training]
        self._test_images = _normalised(arrays["t10k-images-idx3-ubyte"])
        self._test_labels = torch.from_numpy(arrays["t10k-labels-idx1-ubyte"].astype("int64"))
        model = nn.Sequential(
            nn.Conv2d(1, 32, kernel_size=3, padding=1, bias=variant.bias), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, kernel_size=3, padding=1, bias=variant.bias), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(3136, 512, bias=variant.bias), nn.Linear(512, 10, bias=variant.bias),
        )  # fmt: skip
        parameters = sum(parameter.numel() for parameter in model.parameters())
        if parameters != variant.parameters:
            raise AssertionError(f"the network has {parameters:,} parameters, not {variant.parameters:,}")
        self._loss = nn.CrossEntropyLoss()
        self.images_per_step = variant.batch * options.scale
        self._pipeline: Pipeline | None = None
        if variant.staged and distributed.size() > 1:
            first_batch = self._images[: self.images_per_step]
            self._pipeline = Pipeline((model[:CUT], model[CUT:]), first_batch, self._loss)
        self._model = Network(model, options, ranked=self._pipeline is None)
        self.network = self._pipeline or self._model
        self._optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, weight_decay=0.005)
        self._order: Tensor
        self._next = 0
        full = len(self._images) // self.images_per_step
        self.steps_per_epoch = full if variant.staged else -(-len(self._images) // self.images_per_step)
        files = (__file__, distributed.__file__, fashion_mnist.__file__, modes.__file__, pipeline.__file__)
        self.digests = {
            "code": digests.of_code((variant, options), *files),
            "data": data_digest,
            "initial_weights": digests.of_weights(model),
        }

    def step(self) -> float | None:
        """Train on the next batch, reshuffling at each epoch's start, and return the loss.

        Of several ranks each returns its part of it; the first of two stages does not know it, and returns None.
        """
        if self._next % self.steps_per_epoch == 0:
            self._order = self._torch.randperm(len(self._images), generator=self._generator)
            self._next = 0
        size = self.images_per_step
        batch = self._order[self._next * size : (self._next + 1) * size]
        self._next += 1
        self._optimizer.zero_grad()
        loss = self._backward_in_stages(batch) if self._pipeline else self._backward(batch)
        self._optimizer.step()
        return loss

    def _backward(self, batch: Tensor) -> float:
        part = distributed.share(batch)
        scores = self._model(self._model.laid_out(self._images[part]))
        # of an epoch's last batch, which is smaller, some of very many ranks have nothing: no mean, and no gradients
        loss = self._loss(scores, self._model.placed(self._labels[part])) if len(part) else scores.sum()
        loss = distributed.weighted(loss, len(part), len(batch))
        loss.backward()  # type: ignore[no-untyped-call]  # PyTorch has no types for it
        return float(loss.item())

    def _backward_in_stages(self, batch: Tensor) -> float | None:
        assert self._pipeline is not None
        part = self._pipeline.share(batch)
        return self._pipeline.backward(self._images[part], self._labels[part])

    def quality(self) -> dict[str, object]:
        """``accuracy``: the share of the 10,000 test images that the network classifies rightly, from 0 to 1."""
        if self._pipeline:
            self._pipeline.gather()
        right = 0
        with self._torch.no_grad():
            for first in range(0, len(self._test_images), 1000):
                images = self._model.laid_out(self._test_images[first : first + 1000])
                right += int((self._model.test(images).argmax(1) == self._test_labels[first : first + 1000]).sum())
        return {"accuracy": right / len(self._test_images)}


def _normalised(images: NDArray[uint8]) -> Tensor:
    import torch

    tensor = torch.from_numpy(images.astype("float32")).unsqueeze(1)
    return tensor.div_(255).sub_(MEAN).div_(DEVIATION)


def prepare(data: str, options: Options = USUAL, variant: Variant = Variant()) -> Training:
    """Load ``data`` (a folder, or ``synthetic``), build the network and be ready to step."""
    return Training(data, options, variant)
