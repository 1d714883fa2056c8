"""What a rank does beside its training: meet the others, take its share of a batch, and put all their samples together.

All of it can be asked without ranks too: one process has the whole batch.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from envkit.worker import nvml
from envkit.worker.messages import OtherModes, UnlikeRank
from envkit.worker.messages.captions import FINAL_WEIGHTS

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
# What is said of one rank alone.
OF_ONE = ("rank", "node", "cpus", "gpu", "final_weights")
# What is kept of each.
OF_EACH = ("rank", "node", "cpus", "gpu", "communication", "evidence")
# What adds up over ranks.
SUMMED = (
    "user_s", "system_s", "minor_faults", "major_faults", "voluntary_switches", "involuntary_switches", "worker_cpus",
    "worker_cpus_busy_s", "worker_cpus_steal_s", "throttle_events",
)  # fmt: skip


def size() -> int:
    """How many ranks train together; 1 where this process trains alone."""
    group = _group()
    return int(group.get_world_size()) if group else 1


def rank() -> int:
    """Which of them this is, from 0."""
    group = _group()
    return int(group.get_rank()) if group else 0


def _group() -> Any:
    """torch.distributed, where this process is one of several ranks. Nothing is imported to find that out."""
    found = sys.modules.get("torch.distributed")
    return found if found is not None and found.is_available() and found.is_initialized() else None


def share(batch: Any, parts: int | None = None, number: int | None = None) -> Any:
    """The part of a batch (a tensor of N) that this rank trains on, or part ``number`` of ``parts``."""
    parts, number = parts or size(), rank() if number is None else number
    return batch.tensor_split(parts)[number] if parts > 1 else batch


def weighted(loss: Any, own: int, whole: int) -> Any:
    """The mean ``loss`` of ``own`` items, so that the mean over ranks is that of all ``whole`` items of the batch.

    DistributedDataParallel takes the plain mean of the ranks' gradients.
    """
    factor = own * size() / whole
    return loss if factor == 1 else loss * factor


def wrapped(model: Any) -> Any:
    """A model whose gradients are the mean of all ranks'; the model itself where there are no others."""
    if size() == 1:
        return model
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model)


def as_rank(train: Callable[..., dict[str, Any]], backend: str, device: str) -> dict[str, Any] | None:
    """Run ``train`` as one of several ranks, as torchrun's variables say; the sample of all of them, in rank 0.

    ``train`` takes ``cpus``, those that this process may run on. What fails is left in a file for torchrun. ``backend``
    is one of BACKENDS.
    """
    cpus = os.sched_getaffinity(0)  # before torch, whose OpenMP runtime may bind this thread to fewer
    import torch.distributed as group
    from torch.distributed.elastic.multiprocessing.errors import record

    def all_of_it() -> dict[str, Any] | None:
        meet(group, backend, device)
        document = {**train(cpus=cpus), "rank": rank(), "node": platform.node(), "cpus": sorted(cpus)}
        documents = of_all(document)
        first = rank() == 0
        group.barrier()  # nobody leaves before all have said what they have to say
        group.destroy_process_group()  # gloo's threads would abort a process that another rank left first
        return merged(documents) if first else None

    found: dict[str, Any] | None = record(all_of_it)()
    return found


def meet(group: Any, backend: str, device: str) -> None:
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


def of_all(found: Any) -> list[Any]:
    """Return in all ranks what each has ``found`` (JSON data), by rank.

    It travels as JSON: torch.distributed's own calls for objects unpickle, and so run, whatever arrives.
    """
    if size() == 1:
        return [found]
    import torch
    import torch.distributed as group

    own = torch.frombuffer(bytearray(json.dumps(found).encode()), dtype=torch.uint8)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size())]
    group.all_gather(lengths, torch.tensor([own.numel()]))
    padded = torch.zeros(int(max(lengths).item()), dtype=torch.uint8)
    padded[: own.numel()] = own
    texts = [torch.zeros_like(padded) for _ in range(size())]
    group.all_gather(texts, padded)
    return [json.loads(bytes(text[: int(length)].tolist())) for text, length in zip(texts, lengths)]


def backend_of(device: str) -> str:
    """By what ranks exchange tensors of ``device``, as torch.distributed says itself."""
    import torch
    from torch.distributed import group

    world: Any = group.WORLD
    return str(world._get_backend(torch.device(device)).name())


def communication(step: Callable[[], float], backend: str) -> dict[str, float]:
    """For how long a step of this rank communicates (``seconds``), and the ``share`` of the step that this is.

    It is the time, by PyTorch's profiler, in which a message was under way or waited for: while the rank computes, too.
    """
    import time

    from torch.profiler import ProfilerActivity, profile

    on_gpu = backend == NCCL
    settings: dict[str, Any] = {"activities": [ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]}
    with profile(**settings):  # its first use takes longer
        step()
    with profile(**settings) as profiler:
        begin = time.perf_counter()
        for _ in range(PROFILED_STEPS):
            step()
        seconds = time.perf_counter() - begin
    busy = covered(messages(profiler.events(), backend)) / 1e6
    return {"seconds": busy / PROFILED_STEPS, "share": busy / seconds}


def messages(events: Iterable[Any], backend: str) -> list[tuple[float, float]]:
    """Begin and end (microseconds) of all communication among a profiler's events."""
    where = "CUDA" if backend == NCCL else "CPU"
    return [
        (one.time_range.start, one.time_range.end)
        for one in events
        if one.name.startswith(COMMUNICATION[backend]) and one.device_type.name == where
    ]


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the ``spans`` (begin, end) lasts."""
    total, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def merged(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One sample of the samples of all ranks, rank 0's first; or what the ``problem`` is.

    A step ends when the last rank has ended it; all begin the first together. A loss is the mean over ranks, but for
    those that know none and so say None (the first stage of a model in stages). ``peak_memory_bytes`` counts what
    ranks share several times.
    """
    first = documents[0]
    for one in documents[1:]:
        rank = f"rank {one['rank']} ({one['node']})"
        for name, digest in _digests(first).items():
            if _digests(one).get(name) != digest:
                return {"problem": UnlikeRank(name.replace("_", " "), rank).to_json()}
        if one["modes"] != first["modes"] or one.get("backend") != first.get("backend"):
            return {"problem": OtherModes(rank).to_json()}
    usage = {**first["usage"], **{name: _sum(one["usage"].get(name) for one in documents) for name in SUMMED}}
    usage["throttled_s"] = max(one["usage"]["throttled_s"] for one in documents)
    told = [one["communication"] for one in documents if "communication" in one]
    gpus = [one["gpu"] for one in documents if "gpu" in one]
    return {
        **{name: value for name, value in first.items() if name not in OF_ONE},
        "seconds": max(one["seconds"] for one in documents),
        "step_s": _together(one["step_s"] for one in documents),
        "warmup_step_s": _together(one["warmup_step_s"] for one in documents),
        "losses": _losses(documents),
        "usage": usage,
        "peak_memory_bytes": sum(one["peak_memory_bytes"] for one in documents),
        **({"communication": {name: fmean(one[name] for one in told) for name in told[0]}} if told else {}),
        **({"gpu": nvml.together(gpus)} if gpus else {}),
        **({"exchange": _exchanged(documents)} if "exchange" in first else {}),
        "ranks": [{name: one[name] for name in OF_EACH if name in one} for one in documents],
    }


def _digests(document: dict[str, Any]) -> dict[str, str]:
    """Ranks that exchange all their gradients have the same weights to the last bit at the end, too."""
    return {**document["digests"], FINAL_WEIGHTS: document["final_weights"]}


def _together(times: Iterable[Sequence[float]]) -> list[float]:
    """How long each step of all ranks took: maxima of the ranks' own steps would add up to more than the whole."""
    ends = [max(of_step) for of_step in zip(*map(itertools.accumulate, times))]
    return [round(end - begin, 7) for begin, end in zip([0.0, *ends], ends)]


def _exchanged(documents: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    """How long each size took, as the mean over ranks, which is what nccl-tests give."""
    of_sizes = zip(*(one["exchange"] for one in documents))
    return [{"bytes": ranks[0]["bytes"], "seconds": fmean(one["seconds"] for one in ranks)} for ranks in of_sizes]


def _losses(documents: Sequence[dict[str, Any]]) -> list[float]:
    known = [one["losses"] for one in documents if None not in one["losses"]]
    return [fmean(of_step) for of_step in zip(*known)]


def _sum(values: Iterable[Any]) -> Any:
    """None where a kernel does not tell."""
    found = list(values)
    return None if None in found else sum(found)
