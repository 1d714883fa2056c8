"""Plant a fault for real, launch training as it stands and through the kit, and compare what the two say."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from envkit import engines
from envkit.cli.arguments import duration
from envkit.common.errors import InputError
from envkit.engines.base import PROJECT, EngineOptions, Launch
from envkit.engines.inspect_image import inspect
from envkit.profiles import profile
from envkit.profiles.environment import clean
from envkit.profiles.resolve import resolve
from envkit.worker.libraries import LIBRARIES
from envkit.worker.request import Train, WorkerRequest

from tests.processes import BRIEF_ENVKIT

TRAINING = Train("cnn", "synthetic", warmup_steps=1, steps=2)
# Most runs end at the profile's first process. With this seed its sample comes before the baseline's too.
SHORT = ("--data", "synthetic", "--warmup-steps", "1", "--steps", "2", "--blocks", "1", "--seed", "3")
IMAGES = ("envkit-cpu:debian", "envkit-cpu")  # the tests' own image, or else the user's
TIMEOUT_S = duration("10m")  # beside other tests everything takes longer
DOCKER_S = 240
SHOWN_CHARACTERS = 300
SILENCE = "nothing: it trains"


class CantPlant(Exception):
    """This fault can't be made on this machine; the message says why."""


@dataclass(frozen=True)
class Planted:
    """What a planted fault adds to both launches, known only once it is planted.

    ``options`` are for the kit's command line and ``under`` is a command that starts both launches.
    """

    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    under: tuple[str, ...] = ()


@contextlib.contextmanager
def nothing(folder: Path) -> Iterator[Planted]:
    """For a fault that is all in the profile."""
    yield Planted()


@dataclass(frozen=True)
class Fault:
    """One fault, and what the kit must make of it.

    ``profile`` is the YAML of the profile without what every profile must have. ``says`` are words that the kit must
    print, whatever line breaks it puts between them, and ``status`` its exit status.
    """

    name: str
    title: str
    says: tuple[str, ...]
    status: int
    profile: str = ""
    command: str = "bench"
    engine: str = "local"
    options: tuple[str, ...] = ()
    plant: Callable[[Path], AbstractContextManager[Planted]] = nothing


@dataclass(frozen=True)
class Answer:
    """How a launch ended and what it said."""

    status: int
    text: str


@dataclass(frozen=True)
class Finding:
    """``plain`` and ``kit`` are in words for a table."""

    fault: Fault
    plain: str
    kit: str
    caught: bool


NOT_LAUNCHED = Answer(0, "not launched")


def try_out(fault: Fault, plainly: bool = True) -> Finding:
    """Plant the fault, launch training both ways, take the fault away. Raises CantPlant.

    Without ``plainly`` only the kit is launched, and nothing is known of what a plain launch says.
    """
    with open_folder() as folder:
        path = folder / f"{fault.name}.yaml"
        path.write_text(
            f"name: {fault.name}\ntitle: A fault\nwhy:\n  reason: To be found.\n  source: tests/faults/list.py\n"
            + fault.profile
        )
        project = PROJECT if fault.engine == "local" else copy_of_project(folder)
        in_image = ("--image", image()) if fault.engine == "docker" else ()
        with fault.plant(folder) as planted:
            options = (*fault.options, *planted.options, *in_image)
            plain = _plain_launch(fault, str(path), options, planted, project) if plainly else NOT_LAUNCHED
            # a planted fault may be used up by a launch: it is made anew
        with fault.plant(folder) as planted:
            options = (*fault.options, *planted.options, *in_image, "--engine", fault.engine)
            if fault.command == "bench":
                options = (*SHORT, "--output", str(folder / "run"), *options)
            argv = [*planted.under, sys.executable, "-c", BRIEF_ENVKIT, fault.command, str(path), *options]
            kit = _launch(argv, project, folder, planted.variables)
        if not _has_said(fault, kit) and (folder / "run").exists():  # where columns of tables break no sentence
            details = [sys.executable, "-m", "envkit", "report", str(folder / "run"), "--details"]
            kit = replace(kit, text=f"{kit.text}\n{_launch(details, project, folder, {}).text}")
    caught = kit.status == fault.status and _has_said(fault, kit)
    shown = " … ".join(fault.says) if caught else f"NOT CAUGHT: {_in_short(kit, folder)}"
    return Finding(fault, _in_short(plain, folder, only_beginning=True), f"{shown} (exit {kit.status})", caught)


def _has_said(fault: Fault, answer: Answer) -> bool:
    text = " ".join(answer.text.split())
    return all(words in text for words in fault.says)


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that a container's ordinary user can read."""
    with tempfile.TemporaryDirectory(prefix="envkit-fault-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def copy_of_project(folder: Path) -> Path:
    """A copy of the code for containers: the project's own folder may be closed to their ordinary user.

    With what is compiled, but for what Python is just writing: each worker would compile all of it anew.
    """
    copy = folder / "project"
    for name in ("runner", "envprofiles"):
        shutil.copytree(PROJECT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("*.pyc.*"))
    subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
    return copy


def docker_answers() -> None:
    """Raises CantPlant where there is no Docker daemon."""
    if shutil.which("docker") is None:
        raise CantPlant("docker is not installed")
    if subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=DOCKER_S).returncode != 0:
        raise CantPlant("docker does not answer")


def image() -> str:
    docker_answers()
    for name in IMAGES:
        command = ["docker", "image", "inspect", name]
        if subprocess.run(command, capture_output=True, check=False, timeout=DOCKER_S).returncode == 0:
            return name
    raise CantPlant("there is no image; build it with: make image")


def _plain_launch(fault: Fault, path: str, options: tuple[str, ...], planted: Planted, project: Path) -> Answer:
    """Training by hand with what the profile sets, as somebody without the kit would start it."""
    names = EngineOptions.names()
    given = dict(zip(options[::2], options[1::2], strict=False))
    chosen = EngineOptions(
        **{name: given[f"--{name.replace('_', '-')}"] for name in names if f"--{name.replace('_', '-')}" in given}
    )
    place = Path(path).parent
    loaded = profile.load(path)
    engine = engines.get_all([fault.engine], chosen)[fault.engine]
    try:
        environment = resolve(loaded, inspect(engine, clean(os.environ, ())[0], loaded.prefix[:1]))
        variables, prefix = environment.variables, environment.prefix
    except InputError:  # the very fault: what a user would write who does not know
        preload = ":".join(LIBRARIES[library].files[0] for library in loaded.preload)
        variables, prefix = {**loaded.env, **({"LD_PRELOAD": preload} if preload else {})}, loaded.prefix
    if fault.engine != "local":
        argv = engine.command(Launch(TRAINING, variables, prefix=prefix))
        argv = [word.replace(str(PROJECT / "runner"), str(project / "runner")) for word in argv]
        return _launch([*planted.under, *argv], project, place, planted.variables, WorkerRequest(TRAINING).line())
    python = given.get("--python", sys.executable)
    argv = [
        *planted.under,
        "/usr/bin/env",
        *prefix,
        python,
        str(project / "runner/envkit/worker/__main__.py"),
        "-",
    ]
    return _launch(argv, project, place, {**planted.variables, **variables}, WorkerRequest(TRAINING).line())


def _launch(argv: list[str], folder: Path, place: Path, variables: Mapping[str, str], stdin: str = "") -> Answer:
    """Run it in a shell of which only ``variables`` can change the outcome; it reads ``stdin``.

    The machine's lock is for whoever plants the faults; the kit that they are planted for gets one of its own.
    """
    shell, _ = clean(os.environ, ())
    shell["TMPDIR"] = tempfile.mkdtemp(dir=place)
    result = subprocess.run(
        argv, cwd=folder, env={**shell, "PYTHONPATH": str(folder / "runner"), **variables}, text=True, errors="replace",
        capture_output=True, input=stdin, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    # a worker's stdout is its document, which a user's own training would not print
    text = (
        result.stderr
        if any(word.endswith("envkit/worker/__main__.py") for word in argv)
        else result.stdout + result.stderr
    )
    return Answer(result.returncode, text)


def _in_short(answer: Answer, folder: Path, only_beginning: bool = False) -> str:
    """Its different lines, without the names of folders that are another one each time."""
    lines = dict.fromkeys(" ".join(line.split()) for line in answer.text.splitlines() if line.strip())
    text = " / ".join(lines).replace(f"{folder}/", "").replace(f"{PROJECT}/", "")
    if len(text) > SHOWN_CHARACTERS:
        text = f"{text[:SHOWN_CHARACTERS]}…" if only_beginning else f"…{text[-SHOWN_CHARACTERS:]}"
    if answer.status != 0:
        return f"{text} (exit {answer.status})"
    return text or SILENCE
