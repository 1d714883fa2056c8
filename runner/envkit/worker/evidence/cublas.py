"""The memory that torch gives cuBLAS to work in, which CUBLAS_WORKSPACE_CONFIG sets the size of.

torch reads the variable itself and adds up its pairs. For each handle of cuBLAS and each stream it takes so many bytes
from its caching allocator, when the handle is first asked for there, and tells cuBLAS to work in them
(parseChosenWorkspaceSize and setWorkspaceForHandle in PyTorch's aten/src/ATen/cuda/CublasHandlePool.cpp). Without the
variable these are 32 MiB on Hopper, since 2026 on Blackwell too, and 8 MiB and 128 KiB on other GPUs. So the workspace
in force is what torch's allocator is asked for when a handle is asked for that has none.

Asking for the handle computes nothing, so there is no result to take off, and cuBLASLt, to which torch may give other
memory (CUBLASLT_WORKSPACE_SIZE), has no part in it. What is asked for is read, and not what is allocated, which the
allocator rounds up to 512 bytes, and by up to 1 MiB where it has a larger block free.

This follows PyTorch's source and was tried on a stand-in for torch.cuda; it was not run on a GPU yet.
"""

from __future__ import annotations

from types import ModuleType

from envkit.worker.messages.evidence import AllocatorSilent, NoWorkspaceRequest
from envkit.worker.readings import Unread


def workspace_bytes(torch: ModuleType) -> int:
    """Return the bytes of a workspace for this thread and its stream.

    Not to be called before the last timed step: workspaces are taken away for it, and products then get new ones.
    Raises Unread where torch's allocator does not count what it is asked for, or was asked for nothing.
    """
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise Unread(AllocatorSilent(backend))
    torch.cuda.current_blas_handle()  # what else the first one brings along is then there
    torch.cuda.synchronize()  # nothing is to compute in what is taken away
    torch._C._cuda_clearCublasWorkspaces()
    before = _requested(torch)
    torch.cuda.current_blas_handle()
    taken = _requested(torch) - before
    if taken <= 0:
        raise Unread(NoWorkspaceRequest())
    return taken


def _requested(torch: ModuleType) -> int:
    return int(torch.cuda.memory_stats()["requested_bytes.all.current"])
