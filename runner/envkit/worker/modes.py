"""How a workload is trained: device, number format, compiled or not, memory layout, size; any workload takes these."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from envkit.worker import compiler, distributed

if TYPE_CHECKING:
    from torch import Tensor, dtype, nn

FP32, BF16 = "fp32", "bf16-autocast"
PRECISIONS = (FP32, BF16)
CPU, CUDA = "cpu", "cuda"
DEVICES = (CPU, CUDA)


@dataclass(frozen=True)
class Options:
    """``scale`` is how many times as much work a step has as for two cores; the rest are the modes.

    ``precision`` is one of PRECISIONS. ``compile``: with torch.compile. ``channels_last``: images and the weights that
    go over them have their channels innermost in memory. ``device`` is one of DEVICES; ``cuda`` is the first GPU, and
    each of several ranks has the next one. ``backend`` is by what ranks exchange gradients, one of
    distributed.BACKENDS; empty for the usual one of the device.
    """

    precision: str = FP32
    compile: bool = False
    channels_last: bool = False
    scale: int = 1
    device: str = CPU
    backend: str = ""

    @property
    def exchange(self) -> str:
        """By what ranks exchange gradients, also where that was not said."""
        return self.backend or (distributed.NCCL if self.device == CUDA else distributed.GLOO)

    @property
    def on_gpus(self) -> bool:
        return self.device == CUDA

    @property
    def modes(self) -> dict[str, str | bool]:
        """Return the modes that a worker must observe in its training, in the shape of ``Network.modes``."""
        return {
            "precision": self.precision,
            "compile": self.compile,
            "channels_last": self.channels_last,
            "device": self.device,
        }

    def arguments(self) -> tuple[str, ...]:
        """The worker's options for them; none for how a workload is trained when nothing is said."""
        arguments: list[str] = []
        arguments += ["--device", self.device] if self.device != CPU else []
        arguments += ["--backend", self.backend] if self.backend else []
        arguments += ["--precision", self.precision] if self.precision != FP32 else []
        arguments += ["--compile"] if self.compile else []
        arguments += ["--channels-last"] if self.channels_last else []
        arguments += ["--scale", str(self.scale)] if self.scale != 1 else []
        return tuple(arguments)

    def text(self) -> str:
        """``cuda, bf16-autocast, compiled, scale 4``; empty for the defaults."""
        words = [self.device] if self.device != CPU else []
        words += [self.backend] if self.backend else []
        words += [self.precision] if self.precision != FP32 else []
        words += ["compiled"] if self.compile else []
        words += ["channels-last"] if self.channels_last else []
        words += [f"scale {self.scale}"] if self.scale != 1 else []
        return ", ".join(words)


# How a workload is trained when nothing is said.
USUAL = Options()


def digest_of(parameters: Iterable[tuple[str, Tensor]]) -> str:
    """SHA-256 of names and values."""
    digest = hashlib.sha256()
    for name, tensor in parameters:
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


class Model(Protocol):
    """Computes the outputs for a batch."""

    def __call__(self, *inputs: Tensor) -> Tensor: ...


class Network:
    """A model that is trained as ``options`` say; if ``ranked`` by all ranks together.

    Batches come from the host's memory, as they would from a loader: those that the model is called with are moved to
    its device here, and a step moves what it holds the output against (``placed``).
    """

    def __init__(self, model: nn.Module, options: Options, ranked: bool = True) -> None:
        import torch

        self._torch = torch
        self._options = options
        if not options.compile and not (ranked and distributed.size() > 1):  # DDP looks at the compiler's settings
            compiler.leave_out()
        self.model = model.to(options.device) if options.device != CPU else model
        if options.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        trained: Model = distributed.wrapped(self.model) if ranked else self.model
        self._trained = torch.compile(trained) if options.compile else trained
        self._format: dtype | None = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        """The model's output for a batch to train on, as float32 whatever it was worked out in."""
        return self._run(self._trained, inputs)

    def test(self, *inputs: Tensor) -> Tensor:
        """The same in the host's memory; torch.compile would compile anew for each size of a test's batches."""
        return self._run(self.model, inputs).to(CPU)

    def placed(self, tensor: Tensor) -> Tensor:
        """A tensor where the model is; itself where it is there already."""
        return tensor if self._options.device == CPU else tensor.to(self._options.device, non_blocking=True)

    def laid_out(self, images: Tensor) -> Tensor:
        """A batch of images (N x channels x height x width) in the layout that was asked for."""
        if not self._options.channels_last:
            return images
        return images.contiguous(memory_format=self._torch.channels_last)

    def weights(self) -> str:
        """The digest of all that is trained, as it is now."""
        return digest_of(self.model.named_parameters())

    def modes(self) -> dict[str, str | bool]:
        """Return the modes that were in effect, as the training left them: a setting that did nothing is an error."""
        formats: dict[dtype | None, str] = {self._torch.float32: FP32, self._torch.bfloat16: BF16}
        return {
            "precision": formats.get(self._format, str(self._format)),
            "compile": self._options.compile and _compiled_graphs() > 0,
            "channels_last": self._channels_last(),
            "device": next(self.model.parameters()).device.type,
        }

    def _run(self, model: Model, inputs: tuple[Tensor, ...]) -> Tensor:
        with self._autocast():
            outputs: Tensor = model(*map(self.placed, inputs))
        self._format = outputs.dtype
        return outputs.float()  # itself, where it is that already

    def _autocast(self) -> contextlib.AbstractContextManager[object]:
        if self._options.precision == FP32:
            return contextlib.nullcontext()
        device, short = self._options.device, self._torch.bfloat16
        autocast: contextlib.AbstractContextManager[object] = self._torch.autocast(device, dtype=short)
        return autocast

    def _channels_last(self) -> bool:
        """Return whether all filters have that layout; those of one place or one channel look the same in any."""
        filters = [weight for weight in self.model.parameters() if weight.dim() == 4 and min(weight.shape[1:]) > 1]
        layout = self._torch.channels_last
        return bool(filters) and all(weight.is_contiguous(memory_format=layout) for weight in filters)


def _compiled_graphs() -> int:
    """How many graphs torch.compile has compiled in this process, by its own count."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])
