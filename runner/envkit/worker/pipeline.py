"""A model in stages, each in a rank of its own, through which micro-batches go one after the other.

Y. Huang et al.: GPipe: Efficient training of giant neural networks using pipeline parallelism. NeurIPS (2019). Where
there are several ranks for each stage, these train replicas of it, each on its share of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from envkit.worker import distributed
from envkit.worker.modes import FP32, digest_of

if TYPE_CHECKING:
    from torch import Tensor, nn

MICRO_BATCHES = 4


class Pipeline:
    """This rank's stage of a model; with the ranks 0, 1, 2, 3 and two stages, 0 and 2 are replicas of the first.

    ``images`` is a batch for all ranks, as large as each will be; ``loss`` takes scores and labels and is a mean.
    """

    def __init__(self, stages: Sequence[nn.Module], images: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> None:
        import torch
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
        from torch.nn.parallel import DistributedDataParallel

        self._torch = torch
        self._stages = stages
        self.replicas = distributed.size() // len(stages)
        mesh = init_device_mesh("cpu", (self.replicas, len(stages)), mesh_dim_names=("replica", "stage"))
        self.replica, number = distributed.rank() // len(stages), distributed.rank() % len(stages)
        self._first, self._last = number == 0, number == len(stages) - 1
        # what goes into each stage, and out of the last; all but the images has a gradient
        between: list[Tensor] = [images[: len(images) // (self.replicas * MICRO_BATCHES)]]
        with torch.no_grad():
            for stage in stages:
                between.append(stage(between[-1]))
        for tensor in between[1:]:
            tensor.requires_grad_()
        module = stages[number]
        if self.replicas > 1:
            module = DistributedDataParallel(module, process_group=mesh.get_group("replica"))
        own_stage = PipelineStage(
            module, number, len(stages), torch.device("cpu"), input_args=between[number],
            output_args=between[number + 1], group=mesh.get_group("stage"),
        )  # fmt: skip
        self._schedule = ScheduleGPipe(own_stage, MICRO_BATCHES, loss_fn=loss)

    def share(self, batch: Tensor) -> Tensor:
        """The part of a batch that this rank's replica trains on."""
        return distributed.share(batch, self.replicas, self.replica)

    def backward(self, images: Tensor, labels: Tensor) -> float | None:
        """Work out the gradients of this stage for the replica's part of a batch; the loss, which others than the last
        stage don't know.
        """
        losses: list[Tensor] = []
        inputs = (images,) if self._first else ()
        target = labels if self._last else None
        self._schedule.step(*inputs, target=target, losses=losses if self._last else None, return_outputs=False)
        return float(self._torch.stack(losses).mean().item()) if losses else None

    def gather(self) -> None:
        """Give every rank the weights of all stages as they are now, to test the whole model with."""
        for number, stage in enumerate(self._stages):
            for parameter in stage.parameters():
                self._torch.distributed.broadcast(parameter.data, src=number)

    def weights(self) -> str:
        """As that of ``modes.Network``: of all stages, in every rank."""
        self.gather()
        return digest_of(parameter for stage in self._stages for parameter in stage.named_parameters())

    def modes(self) -> dict[str, str | bool]:
        """As that of ``modes.Network``: stages are trained in no other mode."""
        formats = {parameter.dtype for stage in self._stages for parameter in stage.parameters()}
        precision = FP32 if formats == {self._torch.float32} else ", ".join(sorted(map(str, formats)))
        return {"precision": precision, "compile": False, "channels_last": False}
