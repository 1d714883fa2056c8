"""PyTorch's compiler: training without importing it where nothing is compiled, and the folder of compiled code.

``torch.optim.Optimizer`` marks its functions for torch.compile through ``torch._dynamo.disable`` and ``graph_break``
(torch/_compile.py and torch/optim/optimizer.py, from 2.0 to 2.13), which import all of that package: on the machines
that this was measured on, half of what a worker takes from its start to its first step.
"""

from __future__ import annotations

import getpass
import importlib
import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from types import ModuleType

from envkit.worker.errors import WorkerError
from envkit.worker.messages import ForeignCompilerCache

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


def require_own_cache() -> None:
    """Make PyTorch's default folder for compiled code, and raise WorkerError if another user could put code there.

    Its name in the temporary folder, which all users share, can be foretold. Nobody but its owner can take it away from
    a sticky folder once it is there. A folder that the caller has named instead is the caller's own choice.
    """
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        return
    folder = default_cache()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
            raise WorkerError(ForeignCompilerCache(str(folder))) from None
    except OSError:
        pass  # PyTorch says more of it


def default_cache() -> Path:
    """Return the folder that PyTorch keeps compiled code in (torch/_inductor/runtime/cache_dir_utils.py)."""
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
