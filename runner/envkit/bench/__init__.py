"""Measuring: what a run is to measure, its blocks and samples, the measuring loop and the record.

``envkit.bench`` is this package, and can be called: ``envkit.bench("glibc-retain", command=["python", "train.py"])``
is ``envkit.api.bench``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType


class _Callable(ModuleType):
    def __call__(self, *arguments: object, **options: object) -> object:
        return importlib.import_module("envkit.api").bench(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
