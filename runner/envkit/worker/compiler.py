"""Train without importing PyTorch's compiler, which optimizers import for nothing where nothing is compiled.

``torch.optim.Optimizer`` marks its functions for torch.compile through ``torch._dynamo.disable`` and ``graph_break``
(torch/_compile.py and torch/optim/optimizer.py, from 2.0 to 2.13), which import all of that package: on the machines
that this was measured on, half of what a worker takes from its start to its first step.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

PACKAGE = "torch._dynamo"


class _StandIn(ModuleType):
    """Has what optimizers ask for, and becomes the real package as soon as anything else of it is wanted."""

    def disable(self, fn: object = None, recursive: bool = True, **options: object) -> object:
        """The function as it is, or what leaves one as it is: it is not compiled anyway."""
        return (lambda function: function) if fn is None else fn

    def graph_break(self, msg: str = "") -> None:
        """Nothing: there is no graph."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__path__":  # which is asked of any module
            raise AttributeError(name)
        if sys.modules.get(PACKAGE) is self:
            del sys.modules[PACKAGE]
        return getattr(importlib.import_module(PACKAGE), name)


def bring_back() -> None:
    """Have the real package again, before what imports modules of it by name: these would be made twice."""
    if isinstance(sys.modules.get(PACKAGE), _StandIn):
        del sys.modules[PACKAGE]
        importlib.import_module(PACKAGE)


def leave_out() -> None:
    """Have what trains from here on in this process do without the compiler, where it was not imported already."""
    import torch

    if PACKAGE not in sys.modules:
        sys.modules[PACKAGE] = torch._dynamo = _StandIn(PACKAGE)
