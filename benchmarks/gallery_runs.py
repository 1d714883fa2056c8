"""The gallery's list (``benchmarks/gallery/models.yaml``), and one session of one of its trainings."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec
from envkit import engines
from envkit.advice.machine import Machine, machine_of, page_fault_s
from envkit.advice.symptoms import of_sample
from envkit.bench.arms import Arm
from envkit.bench.parse_sample import parse_sample
from envkit.bench.prepare import prepare
from envkit.bench.study import REFERENCE_PROFILE, StoppingRule, Study
from envkit.checks.interference import disturbances
from envkit.cli import measuring
from envkit.cli.measuring import Invocation
from envkit.cli.measuring_options import BUDGET_S, against_baseline
from envkit.common import codec, yamlfile
from envkit.common.errors import MISFITS, InputError
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import PROJECT, EngineOptions
from envkit.engines.inspect_image import inspect
from envkit.engines.measurement import Measurement
from envkit.profiles import profile
from envkit.profiles.environment import clean
from envkit.rendering import text
from envkit.tuning.narrow import require, why
from envkit.worker.request import RunCommand, UserCommand
from msgspec import structs

from benchmarks import gallery_atlas, growing, script
from benchmarks.errors import ScriptError
from benchmarks.gallery_atlas import Session, Watched
from benchmarks.results import append_line

LIST = PROJECT / "benchmarks" / "gallery" / "models.yaml"
PYTHON = ".venv-gallery/bin/python"
METRIC, LOSS_METRIC = r"step \d+: ([0-9.]+) s", r"loss (\S+)"
# The first steps of a process, which are slower and don't count.
WARMUP_LINES = 3
# The best named candidates, of which those are measured that apply to the machine.
PROFILES = (
    "mimalloc-retain", "mimalloc-retain-openblas", "mimalloc-retain-mkl", "jemalloc-retain", "jemalloc-retain-mkl",
    "glibc-retain", "glibc-retain-mkl", "intel-omp",
)  # fmt: skip
# The most blocks of a session: by these eight comparisons have intervals. And the fewest that are worth starting it.
BLOCKS, FEWEST_BLOCKS = 9, 2
# How long a training is watched, at most, and the steps that it would take if nothing stopped it. Times in seconds.
WATCH_S, WATCH_LIMIT_S, ENDLESS = 10.0, 45.0, 1_000_000
# What is expected of a training that was not measured yet: its watching, the start of a process, and a step.
WATCHING_S, START_S, STEP_S = 20.0, 5.0, 0.3
RECORD = re.compile(r"\d{8}-\d{6}-\w+-[\w+]+")


class Model(msgspec.Struct, frozen=True):
    """A line of the list; ``steps`` of a sample count."""

    title: Annotated[str, msgspec.Meta(min_length=1)]
    kind: Annotated[str, msgspec.Meta(min_length=1)]
    steps: Annotated[int, msgspec.Meta(ge=1)]
    name: str = ""

    def command(self, python: str) -> UserCommand:
        """Return the command that is measured, with the path of its interpreter."""
        return UserCommand(
            self.argv(python, WARMUP_LINES + self.steps), str(PROJECT), METRIC, "s", WARMUP_LINES, LOSS_METRIC,
            in_place=True,
        )  # fmt: skip

    def argv(self, python: str, steps: int) -> tuple[str, ...]:
        return (python, f"benchmarks/gallery/{self.name}.py", "--steps", str(steps))


def models(path: Path = LIST) -> dict[str, Model]:
    """The gallery, by name. Raises InputError for a line that can't be used."""
    file = yamlfile.read(path, "the list of the gallery")
    return {name: structs.replace(script.parse(file, Model, name), name=name) for name in file.data}


def require_python(python: str) -> None:
    """Raise InputError where there is nothing that has what the gallery needs."""
    if not (PROJECT / python).exists():
        raise ScriptError(f"there is no {python} yet, which the trainings run in; make it with: make gallery-setup")


@dataclass(frozen=True)
class Host:
    """This machine, and the arms that are measured on it: the baseline, and the profiles that apply here."""

    machine: Machine
    arms: Sequence[Arm]
    left_out: Mapping[str, str]  # why, by the profile's name


def host(profiles: Iterable[str], python: str, must_apply: bool) -> Host:
    """Return this machine with those of the profiles that apply here. Raise InputError if none does.

    ``python`` is the trainings' interpreter, which may bring libraries.
    ``must_apply``: raise it for each profile that does not apply, too.
    """
    inherited, _ = clean(os.environ, keep=())
    inspection = inspect(engines.get_all(["local"], EngineOptions(python=str(PROJECT / python)))["local"], inherited)
    applying, left_out = [], {}
    for name in profiles:
        try:
            require(profile.load(name), inspection)
        except InputError as error:
            if must_apply:
                raise
            left_out[name] = text(why(error))
        else:
            applying.append(name)
    arms = against_baseline(applying, "local") if applying else []
    if len(arms) < 2:
        raise ScriptError("no profile applies to this machine: there is nothing to compare with the baseline")
    return Host(machine_of(inspection), arms, left_out)


# --- how long a session takes ---


def expected_block_s(model: Model, sessions: Sequence[Session], here: Host, watched: Watched | None = None) -> float:
    """Return the seconds that a block is expected to take: by earlier sessions here, or by the training's steps."""
    earlier = [
        session.seconds / len(session.blocks) / len(session.names)
        for session in sessions
        if session.training == model.name and session.machine == here.machine and session.blocks and session.seconds
    ]
    if earlier:
        return median(earlier) * len(here.arms)
    step_s = watched.symptoms.step_s if watched and watched.symptoms.step_s else STEP_S
    return len(here.arms) * (START_S + (WARMUP_LINES + model.steps) * step_s)


def blocks_here(sessions: Sequence[Session], name: str, machine: Machine) -> int:
    """Return how many blocks of a training there are of this machine."""
    return sum(len(each.blocks) for each in sessions if each.training == name and each.machine == machine)


# --- one session ---


def watch(model: Model, python: str) -> Watched:
    """Return the symptoms of a training with nothing set, and the cost of a page fault. This takes about 20 seconds.

    Raise ScriptError if the training can't be watched.
    """
    command = replace(model.command(python), argv=model.argv(python, ENDLESS), metric=None, loss_metric=None)
    study = Study(
        title=model.name, stopping=StoppingRule(0.0), workload=model.name, user_command=command
    ).with_arms([Arm(REFERENCE_PROFILE, REFERENCE_PROFILE, "local")])  # fmt: skip
    with machine_lock():
        fault_s = page_fault_s()
        job = prepare(study).job
        (arm,) = job.study.arms
        work = RunCommand(command, WARMUP_LINES, watch_s=WATCH_S, watch_limit_s=WATCH_LIMIT_S)
        outcome = job.context.engines[arm.target].run(job.launch(arm, work))
    sample, problem = parse_sample(outcome, (), job.study.options)
    if sample is None or problem is not None:
        reason = "it printed no sample" if problem is None else text(problem)
        raise ScriptError(f"{model.name}: can't be watched: the worker {reason}")
    measurement = codec.parse(sample, Measurement)
    disturbed = [*disturbances(measurement.usage, measurement.seconds or sum(measurement.step_s))]
    if disturbed:
        print(f"{model.name}: the watching was disturbed ({', '.join(disturbed)}): no fit uses it", flush=True)
    return Watched(of_sample(measurement), float(f"{fault_s:.3g}"), disturbed)


def measure(model: Model, folder: Path, here: Host, python: str, blocks: int, watched: Watched | None) -> int:
    """Measure a training for so many blocks into ``folder``, and return the exit status."""
    if watched is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _beside(folder).write_text(json.dumps(watched.to_json()))
    study = Study(
        title=model.name,
        stopping=StoppingRule(BUDGET_S, blocks, open_ended=True),
        workload=model.name,
        user_command=model.command(python),
    ).with_arms(here.arms)
    return measuring.run(study, Invocation(output=folder, resumed_by=None), report=lambda _: 0)


def folder_for(records: Path, model: Model, commit: str) -> Path:
    """Return the folder of a session's record, which names when it began, its training and the commit."""
    return records / f"{time.strftime('%Y%m%d-%H%M%S')}-{model.name}-{commit}"


def collect(records: Path, atlas: Path) -> list[Session]:
    """Add all sessions in ``records`` that are not in the atlas yet, and return those that were added."""
    added: list[Session] = []

    def add(folder: Path, commit: str) -> None:
        session = gallery_atlas.session_of(folder, commit, _watched(folder))
        known = {(each.training, each.began) for each in gallery_atlas.read_sessions(atlas)}
        if (session.training, session.began) not in known and (session.blocks or session.failure):
            append_line(atlas, session.to_json())
            added.append(session)

    growing.collect([path for path in records.glob("*") if RECORD.fullmatch(path.name)], add)
    return added


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _watched(folder: Path) -> Watched | None:
    """Return what was observed before the session in ``folder``; None if that was not kept."""
    try:
        return codec.parse(json.loads(_beside(folder).read_text()), Watched)
    except (OSError, *MISFITS):
        return None


def fitting_blocks(left_s: float, block_s: float, most: int) -> int:
    """Return how many blocks fit into so many seconds, at most ``most``; 0 if they are too few to start a session."""
    blocks = min(most, math.floor(left_s / block_s))
    return blocks if blocks >= min(most, FEWEST_BLOCKS) else 0
