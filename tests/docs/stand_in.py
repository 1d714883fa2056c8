"""Stand-ins for what commands on pages start: workers of every engine answer at once, and every profile is in effect.

Nothing trains, no container starts and no library needs to be installed; all else of envkit runs as it does for users.
As a script, this module is the command ``envkit`` with these stand-ins: ``python -m tests.docs.stand_in ARGUMENTS``.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from envkit.checks import effect, steady_process
from envkit.cli import main, measuring
from envkit.cli.commands import doctor, tune
from envkit.engines.base import EngineOptions
from envkit.profiles import places
from envkit.worker.measure.machine_load import Load
from envkit.worker.messages.gpus import BuiltWithoutCuda

from tests.advice.trainings import observed
from tests.instant_engine import InstantEngine, replace_engine
from tests.instant_images import InstantImages
from tests.nvidia import accelerator
from tests.report.test_issue import EVIDENCE
from tests.simulated_worker import inspection
from tests.simulation import Simulation

FOLDER = "ENVKIT_DOCS_STAND_IN"
# How each engine names its image.
IMAGES = {"docker": "image", "podman": "image", "apptainer": "sif", "enroot": "sqsh", "local": "python"}
GPUS = 8
# In the place of every library that a profile preloads: it is there, and preloading it changes nothing.
HARMLESS = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm" in line)
SEEN = {
    **EVIDENCE,
    "openmp": {**EVIDENCE["openmp"], "mapped": ["/usr/lib/libgomp.so.1"], "max_threads": 2, "blocktime_ms": 200},
}


class AnyImage(InstantImages):
    """Has every image that a page names."""

    def __init__(self, folder: Path, name: str, option: str, gpus: int | None) -> None:
        super().__init__(folder, name, option)
        self._gpus = gpus

    def __call__(self, options: EngineOptions) -> InstantEngine:
        name = str(getattr(options, self._option))
        equip(self.add(name), self._gpus, name)
        return super().__call__(options)


@cache
def preloaded_libraries() -> list[str]:
    """Return the names of all libraries that shipped profiles preload."""
    settings = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in places.PROFILE_FOLDER.glob("*.yaml")]
    return sorted({name for each in settings for name in each.get("preload", ())})


def equip(simulation: Simulation, gpus: int | None, python: str = "python") -> None:
    """Give a simulated machine all libraries that profiles preload, and ``python``.

    With ``gpus``, it says that it has so many; without, it says nothing of any.
    """
    libraries = {name: {"path": HARMLESS, "sha256": "0" * 64} for name in preloaded_libraries()}
    facts = {**inspection([], {})["facts"], "usable_cpus": 2, "affinity_cpus": 2, "online_cpus": 2, "smt": False}
    if gpus:
        facts |= {"gpus": gpus, "usable_cpus": 2 * gpus, "physical_cores": 2 * gpus}
    of_python = {"version": "3.11.7", "executable": python, "prefix": python.removesuffix("/bin/python")}
    asked = {} if gpus is None else {"accelerator": accelerator(gpus, problem=None if gpus else BuiltWithoutCuda())}
    simulation.inspection(libraries=libraries, facts=facts, python=of_python, **asked)
    told = observed()
    simulation.worker("baseline", observed=told["observed"], evidence=SEEN, full_steps=10, other_processes=[],
                      quality={"accuracy": 0.9})  # fmt: skip
    if gpus:
        simulation.worker(f"baseline on 1/{gpus}", usage={"worker_cpus": 2})
        each = {str(rank): {"evidence": {"gpu": {"uuid": f"GPU-{rank}"}}} for rank in range(gpus)}
        simulation.worker(f"baseline on {gpus} ranks", evidence={"gpu": {}}, of_rank=each, backend="nccl")


def watched(pid: int, seconds: float) -> dict[str, Any]:
    """Return what is seen of a running process from outside."""
    return {"pid": pid, "seconds": seconds, "usage": observed()["usage"], "waited_s": 0.1}


def arrange(patch: pytest.MonkeyPatch, folder: Path, gpus: int | None = None, two_pythons: bool = False) -> None:
    """Set up the stand-ins, with their files in ``folder``.

    The local engine has one Python, which ``exec`` can start, unless two are compared.
    """
    folder.mkdir(exist_ok=True)
    (folder / "local").mkdir(exist_ok=True)
    simulation = Simulation(folder / "local")
    equip(simulation, gpus)
    for engine, option in IMAGES.items():
        replace_engine(patch, engine, AnyImage(folder / engine, engine, option, gpus))
    if not two_pythons:
        replace_engine(patch, "local", InstantEngine(simulation))
    patch.setattr(effect.Check, "holds", property(lambda self: True))
    patch.setattr(doctor, "watch_machine", lambda seconds: Load(seconds, 0.0, 0.0, 0.0))
    patch.setattr(steady_process, "watch", watched)
    patch.setattr(steady_process, "require", lambda pid: None)
    patch.setattr(measuring, "RESULTS", Path("results"))
    patch.setattr(tune, "LOCAL_FOLDER", Path(os.environ["XDG_CONFIG_HOME"]) / "envkit/tuned")


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patched:
        arrange(patched, Path(os.environ[FOLDER]))
        sys.exit(main(sys.argv[1:]))
