"""What CUBLAS_WORKSPACE_CONFIG comes to, by a torch that takes workspaces as PyTorch's source does; on no GPU."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from envkit.worker.evidence import cublas
from envkit.worker.messages.evidence import AllocatorSilent, NoWorkspaceRequest
from envkit.worker.readings import Unread

MIB = 2**20
DEFAULT = 8 * MIB + 128 * 1024  # on other GPUs than Hopper and Blackwell


class Torch:
    """A torch whose allocator counts what it is asked for; the first handle in a process brings more along.

    ``setting`` is CUBLAS_WORKSPACE_CONFIG as torch read it. More is allocated than is asked for, as a larger block was
    free. ``keeps``: workspaces can't be taken away.
    """

    def __init__(self, setting=None, backend="native", keeps=False):
        pairs = re.findall(r":([0-9]+):([0-9]+)", setting or "")
        self.size = sum(1024 * int(size) * int(count) for size, count in pairs) if setting else DEFAULT
        self.keeps, self.workspace, self.first, self.tensors = keeps, False, True, 7 * MIB
        self.order = []
        self.cuda = SimpleNamespace(
            get_allocator_backend=lambda: backend, synchronize=lambda: self.order.append("synchronize"),
            current_blas_handle=self._handle, memory_stats=self._stats,
        )  # fmt: skip
        self._C = SimpleNamespace(_cuda_clearCublasWorkspaces=self._clear)

    def _handle(self):
        self.order.append("handle")
        self.tensors += 3 * MIB * self.first
        self.workspace, self.first = True, False
        return 0x55550000

    def _clear(self):
        self.order.append("clear")
        self.workspace = self.workspace and self.keeps

    def _stats(self):
        requested = self.tensors + self.size * self.workspace
        return {"requested_bytes.all.current": requested, "allocated_bytes.all.current": requested + 700 * 1024}


@pytest.mark.parametrize(
    ("setting", "size"),
    [(":4096:8", 32 * MIB), (":16:8", 128 * 1024), (":16:8:4096:2", DEFAULT), (":4096:1", 4 * MIB), (None, DEFAULT)],
)
def test_the_workspace_is_what_the_allocator_is_asked_for(setting, size):
    torch = Torch(setting)
    assert cublas.workspace_bytes(torch) == size
    assert torch.order == ["handle", "synchronize", "clear", "handle"]
    assert torch.workspace  # what computes on has one


@pytest.mark.parametrize(
    ("torch", "why"),
    [
        (Torch(backend="cudaMallocAsync"), AllocatorSilent("cudaMallocAsync")),
        (Torch(keeps=True), NoWorkspaceRequest()),
        (Torch(":0:0"), NoWorkspaceRequest()),
    ],
)
def test_where_it_can_not_be_told(torch, why):
    with pytest.raises(Unread) as caught:
        cublas.workspace_bytes(torch)
    assert caught.value.message == why
