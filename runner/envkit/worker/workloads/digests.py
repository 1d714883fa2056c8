"""Digests of what a workload is made of: SHA-256 of its code and settings, its data, and its initial weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def of_code(settings: object, *files: str) -> str:
    """Of the source files that define a workload, and of ``repr`` of its settings."""
    digest = hashlib.sha256(repr(settings).encode())
    for file in files:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def of_arrays(arrays: Iterable[Any]) -> str:
    """Of the bytes of numpy arrays (contiguous) one after the other, without a copy of them."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array)
    return digest.hexdigest()


def of_weights(model: Any) -> str:
    """Of the names and values of a model's state."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().numpy().tobytes())
    return digest.hexdigest()
