"""Engines start a worker: locally, or in a container. A new one is a module here and a line in ``ENGINES``."""

from __future__ import annotations

from collections.abc import Callable

from runner.engines.base import Engine, EngineOptions
from runner.engines.local import LocalEngine
from runner.errors import InputError

ENGINES: dict[str, Callable[[EngineOptions], Engine]] = {"local": LocalEngine}


def get(name: str, options: EngineOptions) -> Engine:
    """The engine called ``name``, ready to run. Raises InputError if it is unknown or can't be used here."""
    if name not in ENGINES:
        raise InputError(f"--engine: no engine '{name}'; there are: {', '.join(ENGINES)}")
    return ENGINES[name](options)
