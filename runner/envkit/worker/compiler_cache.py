"""The folder in which torch.compile keeps the code that it has made, and from which it executes it later."""

from __future__ import annotations

import getpass
import os
import re
import stat
import tempfile
from pathlib import Path

from envkit.worker.errors import WorkerError
from envkit.worker.messages import ForeignCompilerCache


def require_own() -> None:
    """Make the folder that is PyTorch's default, and raise WorkerError if another user could put code there.

    Its name in the temporary folder, which all users share, can be foretold. Nobody but its owner can take it away from
    a sticky folder once it is there. A folder that the caller has named instead is the caller's own choice.
    """
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        return
    folder = default()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & stat.S_IWOTH:
            raise WorkerError(ForeignCompilerCache(str(folder))) from None
    except OSError:
        pass  # PyTorch says more of it


def default() -> Path:
    """Return PyTorch's default (torch/_inductor/runtime/cache_dir_utils.py)."""
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        user = f"uid_{os.getuid()}"
    return Path(tempfile.gettempdir(), "torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
