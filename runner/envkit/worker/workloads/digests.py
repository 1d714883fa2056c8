"""Digests of what a workload is made of: SHA-256 of its code and settings, its data, and its initial weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import generic
    from numpy.typing import NDArray
    from torch import nn


def of_code(settings: object, *files: str) -> str:
    """Return the digest of the source ``files`` that define a workload, and of ``repr`` of its settings."""
    digest = hashlib.sha256(repr(settings).encode())
    for file in files:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def of_arrays(arrays: Iterable[NDArray[generic]]) -> str:
    """Return the digest of the bytes of contiguous arrays one after the other, without a copy of them."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.data)
    return digest.hexdigest()


def of_weights(model: nn.Module) -> str:
    """Return the digest of the names and values of a model's state."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
