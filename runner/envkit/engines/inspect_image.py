"""Ask a worker what is inside an image: host facts, packages and libraries."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import cast

from envkit.common.errors import InputError
from envkit.engines import measured_cores, reply
from envkit.engines.base import Engine, Launch
from envkit.engines.container import require_in_force
from envkit.engines.local import LocalEngine
from envkit.engines.messages import InspectionFailed, NoTorch, NoTorchInImage, NotPython, TooOld
from envkit.profiles.inspection import Inspection
from envkit.profiles.preload_links import linked
from envkit.profiles.values import numbers
from envkit.worker.gpus import CHOOSING
from envkit.worker.request import Inspect

# What the kit's own workloads need; a user's own training may be older. The oldest torch that docs/results has runs of
# is the book's.
OLDEST_PYTHON, OLDEST_TORCH = "3.10", "2.0"
# What a worker needs to start at all.
WORKERS_PYTHON = "3.8"
# How long a Python that is only to be suggested may take to say whether it has torch.
PATIENCE_S = 1.0


def inspect(
    engine: Engine,
    inherited: Mapping[str, str],
    commands: Iterable[str] = (),
    contents: bool = False,
    gpus: bool | None = None,
    torch: bool = True,
) -> Inspection:
    """Return what a worker that inspects prints under ``engine``; ``commands`` are looked for in there too.

    With ``contents`` it names all packages of the image, for a comparison with another one.
    ``gpus`` says whether it is for training on GPUs, which are then looked for; where that is open (None), they are
    looked for where nothing must be done to see them. Without ``torch`` an image may lack that. If the cores of this
    machine were measured, the facts count those.

    Raises InputError if it can't run or has no torch, and where a limit that was asked for is not in force."""
    look = engine.name == "local" if gpus is None else gpus
    work = Inspect(tuple(commands), contents, look)
    # a container inherits nothing, and what says which GPUs are meant is for it too
    chosen = {name: inherited[name] for name in CHOOSING if name in inherited} if look else {}
    outcome = engine.run(Launch(work, passed_on=chosen, inherited=dict(inherited), gpus=look))
    image = engine.describe()["image"]
    if outcome.failure is not None:
        printed = next(reversed(outcome.stderr_tail.strip().splitlines()), None)
        oldest = WORKERS_PYTHON if engine.name == "local" else None
        raise InputError(InspectionFailed(image, outcome.failure, printed, oldest))
    answer = reply.parse(outcome.stdout)
    if answer is None:
        raise InputError(NotPython(image))
    document = answer.document
    inspection = cast(Inspection, document)
    try:
        version = inspection["packages"]["torch"]
    except (TypeError, KeyError):
        raise InputError(NotPython(image)) from None
    if version is None and torch:
        raise InputError(_no_torch(engine, image))
    require_in_force(engine.given, engine.name, inspection)
    inspection.pop("measured_cores", None)  # those of this machine's user count, and not what an image says
    inspection = measured_cores.applied(inspection)
    # of a container the paths are its own, and so are the names of its folders
    return linked(inspection) if engine.name == "local" else inspection


def require_own_workloads(engine: Mapping[str, str], inspection: Inspection) -> None:
    """Raise InputError if the kit's own workloads can't be trained with the Python or the torch of an image.

    ``engine`` is what the engine says of itself (``Engine.describe``).
    """
    image, python = str(engine["image"]), str(inspection["python"]["version"])
    torch = str(inspection["packages"]["torch"])
    for package, version, oldest in (("Python", python, OLDEST_PYTHON), ("torch", torch, OLDEST_TORCH)):
        if numbers(version) < numbers(oldest):
            example = _example(image) if engine["name"] == "local" else None
            raise InputError(TooOld(image, package, version, oldest, example))


def _no_torch(engine: Engine, image: str) -> NoTorch | NoTorchInImage:
    if not isinstance(engine, LocalEngine):
        return NoTorchInImage(image)
    return NoTorch(image, OLDEST_TORCH, _example(image), engine.of_no_python)


def _example(but: str) -> str:
    """Return a Python of the PATH that has torch, to be suggested, or PATH."""
    has_torch = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    for name in ("python", "python3"):
        path = shutil.which(name)
        if path is not None and path != but:
            try:
                ended = subprocess.run([path, "-c", has_torch], capture_output=True, timeout=PATIENCE_S, check=False)
            except (OSError, subprocess.SubprocessError):
                continue
            if ended.returncode == 0:
                return path
    return "PATH"
