"""What arms run in: an engine, and where images are compared the arm's own image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from runner import engines
from runner.bench.plan import Arm
from runner.engines.base import Engine, EngineOptions
from runner.engines.container import KINDS


def engines_of(arms: Sequence[Arm], options: EngineOptions) -> dict[str, Engine]:
    """An engine that is ready to run for each place (``Arm.target``) of ``arms``.

    Raises InputError as ``engines.get_all`` does, and for an image that is not there.
    """
    of_options = [arm.engine for arm in arms if not arm.image]
    used = engines.get_all(of_options, options) if of_options else {}
    for arm in arms:
        if arm.image:
            own = replace(options, **{KINDS[arm.engine].image_option: arm.image})
            used[arm.target] = engines.get_all([arm.engine], own)[arm.engine]
    return used
