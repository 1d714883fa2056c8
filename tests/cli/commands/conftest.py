"""Simulated sessions as baselines, a Slurm cluster that answers at once, and a simulated machine with GPUs."""

from __future__ import annotations

import pytest
from envkit.engines.slurm import client

from tests.instant_engine import replace_engine
from tests.instant_images import InstantImages
from tests.nvidia import accelerator
from tests.sessions import rewrite, session
from tests.simulated_worker import inspection
from tests.simulation import times

TRAINING = ("python", "train.py", "--epochs", "1")
FACTS = inspection([], {})["facts"]


def words(text):
    """A text in one line, without what wrapping did to it."""
    return " ".join(text.split())


@pytest.fixture
def own(cli, instant, simulation, write_profile, run_folder, tmp_path):
    """Measure ``mine`` with a user's training, by simulated workers that take half the time."""
    simulation.worker("mine", seconds=times(0.5))

    def run(*options, command="bench", blocks=6, sets="", training=TRAINING, profile=True, **more):
        file = write_profile("mine", f"env:\n  SIMULATED: mine\n{sets}")
        for script in [word for word in training if str(word).endswith(".py")]:
            (tmp_path / script).touch()
        fixed = ["--python", simulation.python, "--seed", 7, "--output", run_folder]
        fixed += ["--blocks", blocks] if blocks else []
        options += ("--", *training) if training and "--workload" not in options else ()
        return cli(command, *([file] if profile else []), *fixed, *options, cwd=tmp_path, **more)

    return run


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "baselines"


@pytest.fixture
def save(cli, folder, tmp_path):
    """Save a simulated session (see ``tests.sessions``) as a baseline, with ``change`` made; returns its file."""

    def run(name="old", *options, change=None, **planted):
        made = session(tmp_path / f"record-{name}", **planted)
        if change is not None:
            rewrite(made, change)
        cli("baseline", "save", name, "--from", made, "--folder", folder, *options).ended(0)
        return folder / f"{name}.json"

    return run


@pytest.fixture
def check(cli, folder, tmp_path):
    """Hold another simulated session against the baseline ``old``."""

    def run(*options, **planted):
        made = session(tmp_path / "record-now", **{"seed": 2, **planted})
        return cli("baseline", "check", "old", "--against", made, "--folder", folder, *options)

    return run


@pytest.fixture
def diff(cli, folder):
    """What is said of the baselines ``old`` and ``new``."""
    return lambda *options: cli("baseline", "diff", "old", "new", "--folder", folder, *options)


@pytest.fixture
def save_refused(refused, folder):
    """Why a run can't become the baseline ``old``."""
    return lambda made, *options: refused("baseline", "save", "old", "--from", made, "--folder", folder, *options)


@pytest.fixture
def check_refused(refused, folder):
    """Why a run can't be held against the baseline ``old``."""
    return lambda made, *options: refused("baseline", "check", "old", "--against", made, "--folder", folder, *options)


@pytest.fixture
def slurm(monkeypatch):
    """A cluster of node1 to node3 that takes all jobs: what each sbatch was asked, and the states of its nodes."""
    submitted: list[tuple[str, ...]] = []
    states = {"node1": "idle", "node2": "idle", "node3": "idle"}

    def answer(*command):
        if command[0] == "sbatch":
            submitted.append(command)
            return f"{16 + len(submitted)}\n"
        if command[0] == "scontrol":
            assert command[1:] == ("show", "hostnames", "node[1-2]")
            return "node1\nnode2\n"
        assert command[0] == "sinfo"
        if "%N|%T|%E" in command:
            return "".join(f"{name}|{state}|planted\n" for name, state in states.items())
        return "work*|3|node1,node2,node3\n"

    monkeypatch.setattr(client, "_ask", answer)
    monkeypatch.setattr(client, "require", lambda: None)
    return submitted, states


@pytest.fixture
def machine(simulation):
    """A machine with so many GPUs, or with a ``problem`` that keeps torch from them."""

    def make(count=1, **fields):
        seen = accelerator(count, **fields)
        simulation.inspection(facts={**FACTS, "gpus": seen["usable"]}, accelerator=seen)

    return make


@pytest.fixture
def images_of(tmp_path, monkeypatch):
    """Have an engine answer at once; returns its images, of which there are none yet."""

    def make(engine="docker", option="image"):
        made = InstantImages(tmp_path / f"images-{engine}", engine, option)
        replace_engine(monkeypatch, engine, made)
        return made

    return make


@pytest.fixture
def in_image(images_of):
    """An image of Docker's, on a machine with two GPUs."""
    image = images_of().add("envkit-cuda")
    image.inspection(facts={**FACTS, "gpus": 2}, accelerator=accelerator(2))
    return image


@pytest.fixture
def loader_grid(cli, simulation, instant, run_folder):
    """Measure settings of the loader by simulated workers."""

    def run(*options):
        return cli("loader-grid", "--python", simulation.python, "--seed", 7, "--output", run_folder, *options)

    return run
