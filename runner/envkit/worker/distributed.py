"""Have ranks train together: meet the others, take a share of a batch, and put all their samples together.

Everything also works without ranks: one process has the full batch.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import fmean
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeVar

from envkit.worker import nvml
from envkit.worker.messages import OtherModes, UnlikeRank
from envkit.worker.messages.captions import FINAL_WEIGHTS
from envkit.worker.sample import Communication, Exchanged, Sample

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.autograd.profiler_util import FunctionEvent

# The variable with the file in which ranks of one node meet, so that nothing listens on a network for them.
MEETING = "ENVKIT_MEETING"
# Steps under the profiler, after those that are timed.
PROFILED_STEPS = 10
# By what ranks exchange gradients: between any processes, or from GPU to GPU.
GLOO, NCCL = "gloo", "nccl"
BACKENDS = (GLOO, NCCL)
# How the profiler's events begin in which a rank sends, receives, or waits for others: calls of gloo's on the host, and
# what NCCL runs on the GPU.
COMMUNICATION = {GLOO: "gloo:", NCCL: "nccl"}
# Keys of one rank alone.
OF_ONE = ("rank", "node", "cpus", "gpu", "final_weights")
# Keys that are kept of each rank.
OF_EACH = ("rank", "node", "cpus", "gpu", "communication", "evidence")
# Counters that add up over ranks.
SUMMED = (
    "user_s", "system_s", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "worker_cpus",
    "worker_cpus_busy_s", "worker_cpus_steal_s", "throttle_events",
)  # fmt: skip

Document = TypeVar("Document")


def size() -> int:
    """How many ranks train together; 1 where this process trains alone."""
    group = _group()
    return int(group.get_world_size()) if group else 1


def rank() -> int:
    """Which of them this is, from 0."""
    group = _group()
    return int(group.get_rank()) if group else 0


def _group() -> ModuleType | None:
    """torch.distributed, where this process is one of several ranks. Nothing is imported to find that out."""
    group = sys.modules.get("torch.distributed")
    return group if group is not None and group.is_available() and group.is_initialized() else None


def share(batch: Tensor, count: int | None = None, number: int | None = None) -> Tensor:
    """The part of a batch (a tensor of N) that this rank trains on, or part ``number`` of ``count``."""
    count, number = count or size(), rank() if number is None else number
    return batch.tensor_split(count)[number] if count > 1 else batch


def weighted(loss: Tensor, items: int, batch_items: int) -> Tensor:
    """Scale the mean ``loss`` of this rank's ``items``, so that the mean over ranks is that of all ``batch_items``.

    DistributedDataParallel takes the plain mean of the ranks' gradients.
    """
    factor = items * size() / batch_items
    return loss if factor == 1 else loss * factor


def wrapped(model: nn.Module) -> nn.Module:
    """A model whose gradients are the mean of all ranks'; the model itself where there are no others."""
    if size() == 1:
        return model
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model)


class TrainsOn(Protocol):
    """Trains on some CPUs, and returns the sample."""

    def __call__(self, *, cpus: Collection[int]) -> Sample: ...


def as_rank(train: TrainsOn, backend: str, device: str) -> dict[str, object] | None:
    """Run ``train`` as one of several ranks, as torchrun's variables say; the sample of all of them, in rank 0.

    ``train`` takes ``cpus``, those that this process may run on. What fails is left in a file for torchrun. ``backend``
    is one of BACKENDS.
    """
    cpus = os.sched_getaffinity(0)  # before torch, whose OpenMP runtime may bind this thread to fewer
    import torch.distributed as group
    from torch.distributed.elastic.multiprocessing.errors import record

    def train_together() -> dict[str, object] | None:
        meet(group, backend, device)
        sample: Sample = {**train(cpus=cpus), "rank": rank(), "node": platform.node(), "cpus": sorted(cpus)}
        samples = of_all(sample)
        first = rank() == 0
        group.barrier()  # nobody leaves before all have said what they have to say
        group.destroy_process_group()  # gloo's threads would abort a process that another rank left first
        return merged(samples) if first else None

    sample_of_all: dict[str, object] | None = record(train_together)()
    return sample_of_all


def meet(group: ModuleType, backend: str, device: str) -> None:
    """Find the other ranks through ``group``, torch.distributed; of the GPUs each rank takes one of its node.

    What ranks tell each other of themselves goes through gloo in any case: it is in the host's memory. Ranks of one
    node meet in a file that only their user can open; those of several nodes at torchrun's address.
    """
    if device == "cuda":
        import torch

        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    by = GLOO if backend == GLOO else f"cpu:{GLOO},cuda:{NCCL}"
    meeting = os.environ.get(MEETING)
    if meeting is None:
        group.init_process_group(by)
    else:
        number, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        group.init_process_group(by, init_method=f"file://{meeting}", rank=number, world_size=count)


def of_all(document: Document) -> list[Document]:
    """Return in all ranks the ``document`` of each (JSON data), by rank.

    It travels as JSON: torch.distributed's own calls for objects unpickle, and so run, whatever arrives.
    """
    if size() == 1:
        return [document]
    import torch
    import torch.distributed as group

    encoded = torch.frombuffer(bytearray(json.dumps(document).encode()), dtype=torch.uint8)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size())]
    group.all_gather(lengths, torch.tensor([encoded.numel()]))
    padded = torch.zeros(int(max(lengths).item()), dtype=torch.uint8)
    padded[: encoded.numel()] = encoded
    texts = [torch.zeros_like(padded) for _ in range(size())]
    group.all_gather(texts, padded)
    return [json.loads(bytes(text[: int(length)].tolist())) for text, length in zip(texts, lengths)]


def backend_of(device: str) -> str:
    """By what ranks exchange tensors of ``device``, as torch.distributed says itself."""
    import torch
    from torch.distributed import group

    assert group.WORLD is not None
    return str(group.WORLD._get_backend(torch.device(device)).name())


def communication(step: Callable[[], float | None], backend: str) -> Communication:
    """For how long a step of this rank communicates (``seconds``), and the ``share`` of the step that this is.

    It is the time, by PyTorch's profiler, in which a message was under way or waited for: while the rank computes, too.
    """
    import time

    from torch.profiler import ProfilerActivity, profile

    on_gpu = backend == NCCL
    activities = [ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]
    with profile(activities=activities):  # its first use takes longer
        step()
    with profile(activities=activities) as profiler:
        begin = time.perf_counter()
        for _ in range(PROFILED_STEPS):
            step()
        seconds = time.perf_counter() - begin
    busy = covered(messages(profiler.events(), backend)) / 1e6
    return {"seconds": busy / PROFILED_STEPS, "share": busy / seconds}


def messages(events: Iterable[FunctionEvent], backend: str) -> list[tuple[float, float]]:
    """Begin and end (microseconds) of all communication among a profiler's events."""
    where = "CUDA" if backend == NCCL else "CPU"
    return [
        (event.time_range.start, event.time_range.end)
        for event in events
        if event.name.startswith(COMMUNICATION[backend]) and event.device_type.name == where
    ]


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the ``spans`` (begin, end) lasts."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def merged(samples: Sequence[Sample]) -> dict[str, object]:
    """One sample of the samples of all ranks, rank 0's first; or what the ``problem`` is.

    A step ends when the last rank has ended it; all begin the first together. A loss is the mean over ranks, but for
    those that know none and so say None (the first stage of a model in stages). ``peak_memory_bytes`` counts what
    ranks share several times.
    """
    first = samples[0]
    for sample in samples[1:]:
        rank = f"rank {sample['rank']} ({sample['node']})"
        for name, digest in _digests(first).items():
            if _digests(sample).get(name) != digest:
                return {"problem": UnlikeRank(name.replace("_", " "), rank).to_json()}
        if sample["modes"] != first["modes"] or sample.get("backend") != first.get("backend"):
            return {"problem": OtherModes(rank).to_json()}
    usage = {**first["usage"], **{name: _sum(sample["usage"].get(name) for sample in samples) for name in SUMMED}}
    usage["throttled_s"] = max(sample["usage"]["throttled_s"] or 0.0 for sample in samples)
    communications = [sample["communication"] for sample in samples if "communication" in sample]
    gpus = [sample["gpu"] for sample in samples if "gpu" in sample]
    return {
        **{name: value for name, value in first.items() if name not in OF_ONE},
        "seconds": max(sample["seconds"] for sample in samples),
        "step_s": _together(sample["step_s"] for sample in samples),
        "warmup_step_s": _together(sample["warmup_step_s"] for sample in samples),
        "losses": _losses(samples),
        "usage": usage,
        "peak_memory_bytes": sum(sample["peak_memory_bytes"] for sample in samples),
        **({"communication": _mean_communication(communications)} if communications else {}),
        **({"gpu": nvml.together(gpus)} if gpus else {}),
        **({"exchange": _exchanged(samples)} if "exchange" in first else {}),
        "ranks": [{name: value for name, value in sample.items() if name in OF_EACH} for sample in samples],
    }


def _digests(sample: Sample) -> dict[str, str]:
    """Ranks that exchange all their gradients have the same weights to the last bit at the end, too."""
    return {**sample["digests"], FINAL_WEIGHTS: sample["final_weights"]}


def _together(times: Iterable[Sequence[float]]) -> list[float]:
    """How long each step of all ranks took: maxima of the ranks' own steps would add up to more than the total."""
    ends = [max(of_step) for of_step in zip(*map(itertools.accumulate, times))]
    return [round(end - begin, 7) for begin, end in zip([0.0, *ends], ends)]


def _mean_communication(communications: Sequence[Communication]) -> Communication:
    return {
        "seconds": fmean(communication["seconds"] for communication in communications),
        "share": fmean(communication["share"] for communication in communications),
    }


def _exchanged(samples: Sequence[Sample]) -> list[Exchanged]:
    """How long each size took, as the mean over ranks, which is what nccl-tests give."""
    of_sizes = zip(*(sample["exchange"] for sample in samples))
    return [
        {"bytes": ranks[0]["bytes"], "seconds": fmean(of_rank["seconds"] for of_rank in ranks)} for ranks in of_sizes
    ]


def _losses(samples: Sequence[Sample]) -> list[float]:
    complete = [sample["losses"] for sample in samples if None not in sample["losses"]]
    return [fmean(loss for loss in of_step if loss is not None) for of_step in zip(*complete)]


def _sum(values: Iterable[float | None]) -> float | None:
    """None where a kernel does not tell."""
    total: float = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
