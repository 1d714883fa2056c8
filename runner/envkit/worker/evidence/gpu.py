"""The GPU that torch trained on, and what its libraries do there; nothing where this process used none.

Seen from within, by asking or by computing: how float32 is multiplied can only be told from a product's last digits.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypedDict

from envkit.worker.evidence import cublas, queues
from envkit.worker.readings import read

if TYPE_CHECKING:
    from torch import Tensor

# A factor whose last digit TF32 loses, which keeps 10 bits of a fraction where float32 keeps 23: 1 is what is left.
LONG = 1 + 2**-12
# More than float32 is out by, in whatever order or way it is added up, and less than that digit.
ROUNDING = 2**-14
# Sizes at which libraries take the units that compute in TF32.
MATRIX, CHANNELS, IMAGE = 512, 64, 32
# CUmoduleLoadingMode of the CUDA driver API.
LOADING = {1: "eager", 2: "lazy"}
# The caching allocator's settings that it reports as they are set (torch.cuda.memory._snapshot).
PLAIN_SETTINGS = (
    "expandable_segments", "garbage_collection_threshold", "pinned_num_register_threads",
    "pinned_use_cuda_host_register", "release_lock_on_cudamalloc",
)  # fmt: skip
MIB = 2**20


class Segment(TypedDict, total=False):
    """Memory that the caching allocator has from the driver."""

    is_expandable: bool


class Snapshot(TypedDict, total=False):
    """The keys of torch.cuda.memory._snapshot that are read. Older releases have no settings."""

    allocator_settings: dict[str, object]
    segments: list[Segment]


def probe() -> dict[str, object]:
    """Return the GPU and its libraries' modes, with sizes in bytes.

    ``tf32_…``: whether float32 work was done in TF32 just now, as it is when a program says nothing.

    ``settings`` are those of the caching allocator; ``expandable_segments`` whether it really has such memory.
    ``measured`` returns the rest.
    """
    torch = sys.modules["torch"]  # the workload has imported it; a probe must not be the first to do so
    if not torch.cuda.is_initialized():
        return {}
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    backend = torch.cuda.get_allocator_backend()
    return {
        "name": properties.name,
        "uuid": str(getattr(properties, "uuid", "")),
        "count": torch.cuda.device_count(),
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "nccl": _or_none(lambda: ".".join(map(str, torch.cuda.nccl.version()))),
        "module_loading": _or_none(_module_loading),
        "allocator": backend,
        **(allocator(torch.cuda.memory._snapshot()) if backend == "native" else {}),
        "tf32_products": shortens_products(torch, "cuda"),
        "tf32_convolutions": shortens_convolutions(torch, "cuda"),
        **measured(torch),
    }


def measured(torch: ModuleType) -> dict[str, object]:
    """Measure the effect of settings that no library reports, or not every driver.

    ``cublas_workspace_bytes``; ``work_queues`` as the driver has them, or else ``kernel_times`` by which they are
    judged; ``one_queue`` says whether streams share one. ``not_verified`` has, by these names, why one is missing.
    """
    document: dict[str, object] = {}
    read(document, "cublas_workspace_bytes", partial(cublas.workspace_bytes, torch))
    read(document, "work_queues", queues.work_queues)
    if "work_queues" not in document:
        read(document, "kernel_times", partial(queues.kernel_times, torch))
    read(document, "one_queue", partial(queues.share_one, document))
    return document


def allocator(snapshot: Snapshot) -> dict[str, object]:
    """Return what torch's caching allocator says of itself; a size without a limit is left out."""
    reported = snapshot.get("allocator_settings") or {}
    settings = {name: reported[name] for name in PLAIN_SETTINGS if name in reported}
    most = reported.get("max_split_size", -1)  # no limit is all bits set, which is -1 in a signed number
    if isinstance(most, int) and 0 < most < 2**62:
        settings["max_split_size_mb"] = most // MIB
    return {
        "settings": settings,
        "expandable_segments": any(segment.get("is_expandable", False) for segment in snapshot["segments"]),
    }


def shortens_products(torch: ModuleType, device: str) -> bool:
    """Return whether a product of float32 matrices comes out with fewer digits than float32 has."""
    single = {"device": device, "dtype": torch.float32}  # whatever the program's own default
    factor = torch.full((MATRIX, MATRIX), LONG, **single)
    with torch.no_grad():
        return shortened(torch.mm(factor, torch.eye(MATRIX, **single)))


def shortens_convolutions(torch: ModuleType, device: str) -> bool:
    """Return the same of a convolution, each of whose outputs is one of its inputs."""
    single = {"device": device, "dtype": torch.float32}
    images = torch.full((16, CHANNELS, IMAGE, IMAGE), LONG, **single)
    filters = torch.zeros(CHANNELS, CHANNELS, 3, 3, **single)
    filters[range(CHANNELS), range(CHANNELS), 1, 1] = 1.0
    with torch.no_grad():
        return shortened(torch.nn.functional.conv2d(images, filters, padding=1))


def shortened(result: Tensor) -> bool:
    """Return whether any of these numbers is further from LONG than float32 rounds."""
    return bool(((result - LONG).abs() > ROUNDING).any())


def _module_loading() -> str | None:
    """Return how the driver loads kernels, as it says itself."""
    mode = ctypes.c_int()
    status = ctypes.CDLL("libcuda.so.1").cuModuleGetLoadingMode(ctypes.byref(mode))
    return LOADING.get(mode.value) if status == 0 else None


def _or_none(ask: Callable[[], str | None]) -> str | None:
    """Return the answer, or None where a driver or a build of torch has none: the rest is evidence all the same."""
    try:
        return ask()
    except (AttributeError, OSError, RuntimeError):
        return None
