"""An engine that has images, whose workers are not started: those of each image behave as its own simulation has it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from envkit.common.errors import InputError
from envkit.engines import container
from envkit.engines.base import EngineOptions, Launch, Outcome
from envkit.messages import Printed

from tests.instant_engine import InstantEngine
from tests.simulation import Simulation


class _InImage(InstantEngine):
    def __init__(self, simulation: Simulation, described: dict[str, Any], options: frozenset[str]) -> None:
        super().__init__(simulation)
        self.name = described["name"]
        self.options = options
        self._described = described

    def describe(self) -> dict[str, Any]:
        return self._described

    def command(self, launch: Launch) -> list[str]:
        options = container.run_options(launch, EngineOptions(), rootless=False, gpus=container.DOCKER.gpus)
        return [self.name, "run", "--rm", *options, self._described["image"], *container.argv(launch)]

    def run(self, launch: Launch) -> Outcome:
        """Containers inherit nothing, and are given what is to be passed on."""
        return super().run(replace(launch, inherited=launch.passed_on))


class InstantImages:
    """Stands for the engine ``name`` in the registry, whose images are named by ``option``, as image or sif."""

    def __init__(self, folder: Path, name: str = "docker", option: str = "image") -> None:
        self._folder, self._name, self._option = folder, name, option
        self._images: dict[str, _InImage] = {}

    def add(self, image: str, digest: str | None = None) -> Simulation:
        """Make the image, with a digest of its name's or another; what its workers do is the simulation's."""
        folder = self._folder / hashlib.sha256(image.encode()).hexdigest()[:12]
        folder.mkdir(parents=True, exist_ok=True)
        simulation = Simulation(folder)
        digest = digest or f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"
        described = {"name": self._name, "version": "27.1", "image": image}
        if self._option != "python":  # of which there is none
            described["digest"] = digest
        self._images[image] = _InImage(simulation, described, frozenset({self._option}) | container.LIMITS)
        return simulation

    def __call__(self, options: EngineOptions) -> InstantEngine:
        """What the registry of engines does to get one."""
        named = str(getattr(options, self._option))
        if named not in self._images:
            raise InputError(Printed(f"there is no image '{named}'; build it"))
        image = self._images[named]
        image.given = options
        return image
