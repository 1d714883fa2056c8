"""Through how many queues kernels reach the GPU: what CUDA_DEVICE_MAX_CONNECTIONS (1 to 32, and 8 if not set) limits.

A driver for CUDA 13.1 or newer tells it: the concurrency limit of a context's work queues, which "depends on
CUDA_DEVICE_MAX_CONNECTIONS and can be queried from the primary context via cuCtxGetDevResource" (CUDA driver API, Green
Contexts: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GREEN__CONTEXTS.html).

Of an older one it is measured whether streams share a single queue, as in NVIDIA's sample simpleHyperQ
(https://github.com/NVIDIA/cuda-samples). Two kernels of one thread are launched in each of STREAMS streams. The second
waits for the first, and what stands behind it in the same queue waits too, whichever stream it is from. So if they are
launched stream by stream ("depth first"), a queue with k streams takes k + 1 kernels' time: STREAMS + 1 where there is
one queue, STREAMS / 2 + 1 where two have as many streams each, and 2 where each stream has its own. If all first
kernels are launched before all second ones ("breadth first"), nothing waits that need not, and it takes 2 however many
queues there are. That is the control: where it takes more, something else keeps streams apart (CUDA_LAUNCH_BLOCKING, a
debugger, another program on the GPU), and nothing is said of queues.

It does not tell one number of queues above one from another: torch makes its streams in pools, and how the driver
spreads them over the queues is not documented. For the same reason streams may share one queue where there are more, so
this proves something of a process that was to have one, and nothing of others.

All of this follows NVIDIA's documentation and was tried on stand-ins for torch.cuda and the driver; it was not run on a
GPU yet.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from envkit.messages import from_json
from envkit.worker.messages.evidence import (
    DriverHidesQueues,
    NoContext,
    NoDriverVersion,
    QueuesNotTold,
    QueuesUnclear,
    StreamsKeptApart,
)
from envkit.worker.readings import NOT_VERIFIED, Unread

if TYPE_CHECKING:
    from torch.cuda import Stream

DRIVER = "libcuda.so.1"
# The first CUDA whose driver tells, as cuDriverGetVersion has it, and CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG.
TELLS_SINCE, WORKQUEUES = 13010, 1000
# Enough for one queue's time and two queues' to lie four kernels apart; torch has 32 streams in a pool.
STREAMS = 8
# How long a kernel runs, in the GPU's clock: 2 to 4 ms, in which the host launches all of the others many times over.
CYCLES = 4_000_000
# Each order's shortest time counts: what disturbs adds to it, and the first launch of a kernel has to load it.
ROUNDS = 4
# How far from a whole number of kernels a time may be, in kernels. One queue's and two queues' are four apart.
MARGIN = 0.5


class Resource(ctypes.Structure):
    """CUdevResource with a CUdevWorkqueueConfigResource in it, as CUDA 13.1 has them (144 bytes)."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("padding", ctypes.c_ubyte * 92),
        ("device", ctypes.c_int),
        ("concurrency_limit", ctypes.c_uint),
        ("sharing_scope", ctypes.c_int),
        ("others", ctypes.c_ubyte * 36),
    ]


def work_queues(library: ctypes.CDLL | None = None) -> int:
    """Return the number of queues that the driver has for this thread's context. Raises Unread if it is silent."""
    library = library or ctypes.CDLL(DRIVER)
    version, context, resource = ctypes.c_int(), ctypes.c_void_p(), Resource()
    if library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        raise Unread(NoDriverVersion())
    if version.value < TELLS_SINCE:
        raise Unread(DriverHidesQueues(_cuda(version.value), _cuda(TELLS_SINCE)))
    if library.cuCtxGetCurrent(ctypes.byref(context)) != 0 or not context.value:
        raise Unread(NoContext())
    status = library.cuCtxGetDevResource(context, ctypes.byref(resource), ctypes.c_int(WORKQUEUES))
    if status != 0 or resource.concurrency_limit == 0:
        raise Unread(QueuesNotTold(status))
    return int(resource.concurrency_limit)


def _cuda(version: int) -> str:
    """Return a version as ``13.1``, from the number that cuDriverGetVersion has for it."""
    return f"{version // 1000}.{version % 1000 // 10}"


def kernel_times(torch: ModuleType) -> dict[str, float]:
    """Measure how long two kernels in each of STREAMS streams take, launched ``depth_first`` and ``breadth_first``.

    The result is in times of one kernel, which is half of what two take that follow each other in one stream.
    """
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    orders = {
        "alone": [streams[0], streams[0]],
        "depth_first": [stream for stream in streams for _ in range(2)],
        "breadth_first": [*streams, *streams],
    }
    rounds = [{name: _seconds(torch.cuda, order) for name, order in orders.items()} for _ in range(ROUNDS)]
    least = {name: min(seconds[name] for seconds in rounds) for name in orders}
    kernel = least["alone"] / 2
    return {name: round(least[name] / kernel, 2) for name in ("depth_first", "breadth_first")}


def _seconds(cuda: ModuleType, order: Sequence[Stream]) -> float:
    """Return the time from the first launch until all is done, by the host's clock.

    Events would need a stream that awaits all.
    """
    cuda.synchronize()
    begin = time.perf_counter()
    for stream in order:
        with cuda.stream(stream):
            cuda._sleep(CYCLES)
    cuda.synchronize()
    return time.perf_counter() - begin


def share_one(document: Mapping[str, object]) -> bool:
    """Return whether streams share a single queue, by the driver's number, or by kernels' times without it.

    Raises Unread where neither is there, or the times are not clearly those of one queue or of several.
    """
    if "work_queues" in document:
        return document["work_queues"] == 1
    times = document.get("kernel_times")
    if not isinstance(times, dict):
        reasons = document[NOT_VERIFIED]
        assert isinstance(reasons, dict), "a reading that failed has its reason there"
        raise Unread(from_json(reasons["kernel_times"]))
    depth, breadth = times["depth_first"], times["breadth_first"]
    if breadth > 2 + MARGIN:
        raise Unread(StreamsKeptApart(STREAMS, breadth))
    if abs(depth - (STREAMS + 1)) <= MARGIN:
        return True
    several = STREAMS // 2 + 1
    if depth <= several + MARGIN:
        return False
    raise Unread(QueuesUnclear(STREAMS, depth, STREAMS + 1, several))
