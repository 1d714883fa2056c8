"""Makes each training step of a worker longer by a known share of its own time: the waiting is the planted effect.

Python imports ``sitecustomize`` when it starts, from a folder in PYTHONPATH. Without PLANTED_SHARE this does nothing.
With it, the module that times steps gets another ``timed``: after each step the same thread waits, busily, for that
share of the time that the step took. The planted ratio is therefore exact whatever the machine's speed is, up to what a
step costs after threads have slept. Fixed work, such as a matrix product, would be another share whenever the speed
changes. Only benchmarks put this folder into PYTHONPATH.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing has it, which would be imported at each start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE = "PLANTED_SHARE"
TIMING_MODULE = "envkit.worker.measure.train"


def longer(step: Callable[[], float | None], share: float) -> Callable[[], float | None]:
    """Return a step that takes ``share`` more time than ``step`` does, and returns the same."""
    from time import perf_counter

    def planted_step() -> float | None:
        begin = perf_counter()
        loss = step()
        now = perf_counter()
        until = now + share * (now - begin)
        while perf_counter() < until:
            pass
        return loss

    return planted_step


class Finder:
    """Finds the module that times steps as the others do, and has it time longer steps once it is executed."""

    def __init__(self, share: float) -> None:
        self._share = share

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != TIMING_MODULE:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            timed = module.timed

            def timed_longer(step: Callable[[], float | None], *arguments: object, **options: object) -> object:
                return timed(longer(step, self._share), *arguments, **options)

            module.timed = timed_longer  # type: ignore[attr-defined]

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if os.environ.get(VARIABLE):
    sys.meta_path.insert(0, Finder(float(os.environ[VARIABLE])))
