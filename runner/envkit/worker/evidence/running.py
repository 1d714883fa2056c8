"""Which library of the registry runs, of those of which a process uses one, and the settings that it has in force."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from envkit.worker.libraries import LIBRARIES, named_as, of_kind

UNKNOWN = "unknown"


def running(path: str | None, kind: str) -> str | None:
    """Return the library of the registry that the loaded file ``path`` is, or None.

    Its name tells, or what it exports if a file of that kind can have any name.
    """
    if path is None:
        return None
    return named_as(path, kind) or exporting(path, kind)


def exporting(path: str, kind: str) -> str | None:
    """Return the library of this kind by the functions that the loaded file ``path`` exports, or None.

    Libraries that can be preloaded come first: they export the functions of those that they replace too.
    """
    loaded = ctypes.CDLL(path)
    candidates = sorted(of_kind(kind).items(), key=lambda item: (not item[1].text, not item[1].files))
    for name, library in candidates:
        exports = library.symbol and hasattr(loaded, library.symbol)
        if exports and (not library.text or library.text in Path(path).read_bytes()):
            return name
    return None


def shown(name: str | None) -> str:
    """Return what the evidence calls a library."""
    return LIBRARIES[name].shows[1] if name else UNKNOWN


def settings(name: str | None) -> Mapping[str, object]:
    """Return the settings that a library which runs has in force; none if nothing asks it."""
    module, _, function = (LIBRARIES[name].settings if name else "").partition(":")
    if not module:
        return {}
    ask: Callable[[], Mapping[str, object]] = getattr(import_module(f"envkit.worker.evidence.{module}"), function)
    return ask()
