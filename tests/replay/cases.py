"""One small study of every kind, with a fixed seed and workers whose noise is planted."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from envkit.cli.commands import tune
from envkit.engines.base import EngineOptions, Launch, Outcome

from tests.instant_engine import Answered, InstantEngine, replace_engine
from tests.instant_images import InstantImages
from tests.simulation import Simulation
from tests.tuning.planted_engine import SMALL_SPACE, PlantedEngine, ship

NOISE, SAMPLES = 0.01, 12
BASELINE, MINE, SLOW = "baseline", "mine.yaml", "slow.yaml"
BLOCKS = ("--steps", 3, "--blocks", 6)
USER_COMMAND = ("--", "python", "train.py", "--epochs", "1")
REACHED = [{"accuracy": accuracy} for accuracy in (0.5, 0.8, 0.82)]
PROFILES = {
    "mine": "env: {SIMULATED: mine}\n",
    "slow": "env: {SIMULATED: slow, MALLOC_ARENA_MAX: '1'}\n",
    "preloads": "preload: [jemalloc]\nenv: {SIMULATED: preloads}\nexpect: {malloc.allocator: jemalloc}\n",
    "fails": "env: {SIMULATED: fails}\n",
    "ineffective": "env: {SIMULATED: ineffective}\nexpect: {openmp.runtime: intel}\n",
    "parts": "preload: [jemalloc]\nenv: {OMP_WAIT_POLICY: passive}\n",
}


def seconds(name: str, factor: float, noise: float = NOISE) -> list[float]:
    """Return the seconds of samples that take ``factor`` times as long as the baseline's; ``name`` is the seed."""
    generator = random.Random(name)
    return [round(factor * generator.lognormvariate(0, noise), 4) for _ in range(SAMPLES)]


@dataclass(frozen=True)
class Case:
    """A command line, and how much longer than the baseline's workers others take."""

    command: tuple[object, ...]
    workers: dict[str, float] = field(default_factory=dict)
    behaviour: dict[str, Any] = field(default_factory=dict)  # of all workers
    gain: Callable[[Any], float] | None = None  # the log speedup of an environment, instead of ``workers``
    images: dict[str, dict[str, float]] = field(default_factory=dict)  # of Docker: the workers of each
    status: int = 0


def _gain(variables: Any) -> float:
    return 0.2 * ("LD_PRELOAD" in variables) + 0.15 * (variables.get("GOMP_SPINCOUNT") == "1000")


def _passive(variables: Any) -> float:
    return 0.3 * ("OMP_WAIT_POLICY" in variables)


RANKS = {"baseline on 2 ranks": 0.625, "mine on 2 ranks": 0.5, "baseline on 1/2": 1.0, "mine": 0.8}
STUDIES = {
    "bench": Case(("bench", MINE, *BLOCKS), {"mine": 0.5}),
    "bench-budget": Case(("bench", MINE, "--budget", "60s"), {"mine": 0.97}),
    "bench-profiles": Case(
        ("bench", MINE, SLOW, "preloads.yaml", *BLOCKS), {"mine": 0.8, "slow": 1.3, "preloads": 1.0}
    ),
    "bench-failed": Case(("bench", "fails.yaml", *BLOCKS), {"fails": 0.7}, status=1),
    "bench-not-in-effect": Case(("bench", "ineffective.yaml", *BLOCKS), {"ineffective": 0.7}, status=1),
    "matrix": Case(("matrix", MINE, SLOW, "preloads.yaml", *BLOCKS), {"mine": 0.8, "slow": 1.3, "preloads": 0.9}),
    "workloads": Case(
        ("bench", MINE, SLOW, "--workload", "all", "--steps", 3, "--blocks", 2), {"mine": 0.8, "slow": 1.3}
    ),
    "ablate": Case(("ablate", "parts.yaml", *BLOCKS), gain=_passive),
    "instances": Case(("bench", MINE, "--instances", 2, *BLOCKS), {"baseline x 2": 1.6, "mine": 0.5, "mine x 2": 0.8}),
    "ranks": Case(("bench", MINE, "--nproc", 2, *BLOCKS), RANKS),
    "weak-scaling": Case(("bench", MINE, "--nproc", 2, "--weak", *BLOCKS), RANKS | {"mine on 2 ranks": 1.0}),
    "images": Case(
        ("bench", BASELINE, "--engine", "docker", "--image", "kit:new", "--against-image", "kit:old", *BLOCKS),
        images={"kit:old": {}, "kit:new": {"baseline": 0.7}},
    ),
    "engines": Case(
        ("compare-engines", BASELINE, "--engines", "local,docker", "--image", "kit:new", *BLOCKS),
        images={"kit:new": {"baseline": 1.03}},
    ),
    "loader-grid": Case(("loader-grid", "--workers", "0,2", "--batches", "16,32", "--blocks", 3)),
    "calibrate": Case(("plan", BASELINE, *BLOCKS)),
    "command-metric": Case(
        ("bench", MINE, "--blocks", 6, "--metric", r"time ([\d.]+) ms", "--unit", "ms", "--warmup-lines", 2,
         *USER_COMMAND),
        {"mine": 0.5},
    ),
    "command-optimizer-steps": Case(
        ("bench", MINE, "--blocks", 6, "--optimizer-steps", 12, *USER_COMMAND), {"mine": 0.5}
    ),
    "full": Case(("bench", MINE, "--full", "--epochs", 3, "--blocks", 4), {"mine": 0.5}),
    "full-until": Case(
        ("bench", MINE, "--full", "--epochs", 3, "--until", "accuracy=0.8", "--blocks", 6),
        {"mine": 0.5}, behaviour={"figures": REACHED},
    ),
    "tune": Case(("tune", "--steps", 3, "--budget", "100s"), gain=_gain),
}  # fmt: skip


class Launches(list[Launch]):
    """The launches of a study in order. Ctrl-C comes at number ``interrupt_at``, which is counted from 1."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        super().__init__()
        self._interrupt_at = interrupt_at

    def append(self, launch: Launch) -> None:
        super().append(launch)
        if len(self) == self._interrupt_at:
            raise KeyboardInterrupt


class Recorder:
    """An engine that keeps each launch, in order, and hands it to another one."""

    def __init__(self, engine: InstantEngine | InstantImages, launches: list[Launch]) -> None:
        self._engine, self._tasks = engine, launches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __call__(self, options: EngineOptions) -> Recorder:
        return Recorder(self._engine(options), self._tasks)

    def start(self, launch: Launch) -> Answered:
        return Answered(self, self._engine.start(launch).launch)  # type: ignore[arg-type]

    def run(self, launch: Launch) -> Outcome:
        self._tasks.append(launch)
        return self._engine.run(launch)


@dataclass
class Bench:
    """Runs studies in ``folder``; ``cli`` is the command line as a function."""

    cli: Callable[..., Any]
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    write_profile: Callable[..., Path]
    stderr: str = ""

    @property
    def output(self) -> Path:
        return self.folder / "run"

    def run(self, case: Case, interrupt_at: int | None = None) -> list[Launch]:
        """Run the study, whose record is in ``output``; return all launches in order."""
        launches = Launches(interrupt_at)
        simulation = self._simulation(self.folder / "simulation", case, case.workers)
        engine = PlantedEngine(simulation, case.gain) if case.gain else InstantEngine(simulation)
        replace_engine(self.monkeypatch, "local", Recorder(engine, launches))
        images = InstantImages(self.folder / "images")
        for name, workers in case.images.items():
            (self.folder / "images").mkdir(exist_ok=True)
            self._plant(images.add(name), case, workers)
        replace_engine(self.monkeypatch, "docker", Recorder(images, launches))
        for name, settings in PROFILES.items():
            self.write_profile(name, settings, folder=self.folder)
        (self.folder / "train.py").touch()
        result = self.cli(*self._arguments(case), cwd=self.folder)
        assert result.returncode == (130 if interrupt_at else case.status), result
        self.stderr = result.stderr
        return launches

    def _simulation(self, folder: Path, case: Case, workers: dict[str, float]) -> Simulation:
        folder.mkdir()
        made = Simulation(folder)
        self._plant(made, case, workers)
        return made

    def _plant(self, simulation: Simulation, case: Case, workers: dict[str, float]) -> None:
        for name, factor in {"baseline": 1.0, **workers}.items():
            failing = {"does": "exit", "status": 3, "from": 2} if name == "fails" else {}
            simulation.worker(name, seconds=seconds(name, factor), **failing, **case.behaviour)

    def _arguments(self, case: Case) -> list[object]:
        command, *options = case.command
        fixed: list[object] = ["--output", self.output, "--seed", 7]
        if not case.images:
            fixed += ["--python", "python"]
        if command == "tune":
            space = self.folder / "small.yaml"
            space.write_text(SMALL_SPACE)
            known = {"known": "preload: [jemalloc]\n"}
            ship(self.monkeypatch, self.folder / "shipped", self.write_profile, **known)
            self.monkeypatch.setattr(tune, "LOCAL_FOLDER", self.folder / "local")
            fixed = ["--space", space, "--output", self.output, "--seed", 7]
        if command != "loader-grid" and USER_COMMAND[0] not in options:
            fixed += ["--data", "synthetic"]
        return [command, *fixed, *options]
