"""Ask a worker what is inside an image: host facts, packages and libraries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from envkit.common.errors import InputError
from envkit.engines.base import Engine, Task
from envkit.engines.container_limits import require_in_force
from envkit.engines.messages import InspectionFailed, NoTorch, NotPython
from envkit.profiles.preload_links import linked
from envkit.worker.gpus import CHOOSING


def inspect(
    engine: Engine,
    inherited: Mapping[str, str],
    commands: Iterable[str] = (),
    contents: bool = False,
    gpus: bool | None = None,
) -> dict[str, Any]:
    """What ``envkit.worker inspect`` prints under ``engine``; ``commands`` are looked for in there too.

    With ``contents`` it names all packages of the image, for a comparison with another one.
    ``gpus`` says whether it is for training on GPUs, which are then looked for; where that is open (None), they are
    looked for where nothing must be done to see them.

    Raises InputError if it can't run or has no torch, and where a limit that was asked for is not in force."""
    look = engine.name == "local" if gpus is None else gpus
    looking = [argument for command in commands for argument in ("--command", command)]
    looking += [*(["--contents"] if contents else []), *(["--gpus"] if look else [])]
    # a container inherits nothing, and what says which GPUs are meant is for it too
    chosen = {name: inherited[name] for name in CHOOSING if name in inherited} if look else {}
    outcome = engine.run(Task(("inspect", *looking), passed_on=chosen, inherited=dict(inherited), gpus=look))
    image = engine.describe()["image"]
    if outcome.failure is not None:
        printed = next(reversed(outcome.stderr_tail.strip().splitlines()), None)
        needs = "Python 3.10 or later, with torch" if engine.name == "local" else None
        raise InputError(InspectionFailed(image, outcome.failure, printed, needs))
    try:
        inspection: dict[str, Any] = json.loads(outcome.stdout)
        torch = inspection["packages"]["torch"]
    except (ValueError, TypeError, KeyError):
        raise InputError(NotPython(image)) from None
    if torch is None:
        raise InputError(NoTorch(image))
    require_in_force(engine.given, engine.name, inspection)
    # of a container the paths are its own, and so are the names of its folders
    return linked(inspection) if engine.name == "local" else inspection
