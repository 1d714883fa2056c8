"""Real engines, and a skip with the reason where one is missing or does not answer."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from envkit.bench import dataset
from envkit.common.errors import InputError
from envkit.engines.base import PROJECT

from tests.processes import BRIEF_ENVKIT

# What shows that an engine is there and answers; none of them needs an image or starts anything.
PROBES = {
    "docker": ("docker", "info"), "podman": ("podman", "info"), "apptainer": ("apptainer", "version"),
    "sbatch": ("sbatch", "--version"), "mksquashfs": ("mksquashfs", "-version"),
}  # fmt: skip
IMAGE = "envkit-cpu:debian"
SIF = PROJECT / "build/envkit-cpu-debian.sif"
# Larger files than by default, for a quarter less processor time, and 0.3 s less at each start of torch in one.
QUICK = {"KIT_SIF_COMPRESSION": "-comp lz4"}
Requires = Callable[[str], None]
BuiltImage = Callable[[str], str]
PROBE_TIMEOUT_S = 240
# What Python is just writing beside what it has compiled may be gone when it is to be copied.
UNFINISHED = shutil.ignore_patterns("*.pyc.*")
USERS = {name: os.environ.get(name) for name in ("DOCKER_HOST", "XDG_CACHE_HOME", "PATH")}


@cache
def missing(engine: str) -> str | None:
    """Return why this engine can't be used, or None."""
    command = PROBES[engine]
    if shutil.which(command[0]) is None:
        return f"{engine} is not installed"
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{engine} does not answer: '{' '.join(command)}' did not end in {PROBE_TIMEOUT_S} s"
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        return f"{engine} does not answer: {last}"
    return None


@pytest.fixture(autouse=True)
def real_engines(own_surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's Docker daemon and Podman, which all other tests leave alone."""
    monkeypatch.delenv("DOCKER_HOST")
    if USERS["DOCKER_HOST"] is not None:
        monkeypatch.setenv("DOCKER_HOST", USERS["DOCKER_HOST"])
    monkeypatch.setenv("PATH", USERS["PATH"] or os.defpath)


@pytest.fixture
def cli(cli_process: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., object]:
    """Here the command line runs as a process of its own, from whatever copy of the project ``cwd`` names."""
    return partial(cli_process, program=("-c", BRIEF_ENVKIT))


@pytest.fixture
def requires(real_engines: None) -> Callable[[str], None]:
    """``requires("docker")`` skips the test, and says why, where that engine can't be used."""

    def check(engine: str) -> None:
        reason = missing(engine)
        if reason:
            pytest.skip(reason)

    return check


def run(
    *command: object, check: bool = True, cwd: Path = PROJECT, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's folder; its output if it fails and must not."""
    result = subprocess.run(
        [*map(str, command)], cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, timeout=900,
        input=stdin, check=False,
    )  # fmt: skip
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.fixture
def tree(wheelhouse: Path, tmp_path: Path) -> Path:
    """A copy of what images/build needs of the project, to change, with the wheels of a file's fixture."""
    tree = tmp_path / "project"
    shutil.copytree(PROJECT / "images", tree / "images", ignore=UNFINISHED)
    shutil.copytree(PROJECT / "runner", tree / "runner", symlinks=True, ignore=UNFINISHED)
    shutil.copy(PROJECT / "Apptainerfile", tree)
    (tree / ".venv").symlink_to(sys.prefix)
    (tree / "build").mkdir()
    (tree / "build/wheelhouse").symlink_to(wheelhouse)
    return tree


@pytest.fixture
def built_image(requires: Requires) -> BuiltImage:
    """``built_image("docker")`` builds the image, if it is not there yet, and returns its name; a SIF's is its path.

    It is the variant debian under its usual name: a user's envkit-cpu is left alone.
    """

    def build(engine: str) -> str:
        requires(engine)
        return _built(engine)

    return build


@cache
def _built(engine: str) -> str:
    """Once in each process of the tests: to find that all is up to date takes a second or two.

    The base image of a test machine is made anew with the machine, so another one than last time is taken.
    """
    if engine == "apptainer":
        run("images/build", "sif", "--variant", "debian", "--output", SIF, "--update", **QUICK)
        return str(SIF)
    if engine == "podman" and not missing("docker"):
        _built("docker")
        _hand_over(IMAGE)
    else:
        run("images/build", "oci", "--engine", engine, "--variant", "debian", "--tag", IMAGE, "--update")
    return IMAGE


def _hand_over(image: str) -> None:
    """Have Podman take an image from Docker, which takes a small part of what it takes to build another."""
    inspect = ("image", "inspect", "--format", '{{index .Config.Labels "envkit.inputs"}}', image)
    with (PROJECT / "build/hand-over.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes of the tests want it too
        if run("podman", *inspect, check=False).stdout != run("docker", *inspect).stdout:
            run("sh", "-c", 'docker save "$1" | podman load --quiet', "sh", image)


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder for code, images and data that a container's ordinary user may read, whoever runs the tests."""
    folder = Path(tempfile.mkdtemp(prefix="envkit-tests-", dir="/var/tmp"))
    folder.chmod(0o755)
    for name in ("cache", "tmp", "runs"):
        (folder / name).mkdir()
        (folder / name).chmod(0o1777)  # as /tmp: nobody replaces the files of others there
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def project(open_folder: Path) -> Path:
    """A copy of the code: the project's own folder may be closed to others.

    With what is compiled, as a container can't write it, and each of its workers would compile all of it anew.
    """
    folder = open_folder / "project"
    for name in ("runner", "envprofiles"):
        shutil.copytree(PROJECT / name, folder / name, symlinks=True, ignore=UNFINISHED)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return folder


@pytest.fixture
def surroundings(open_folder: Path, project: Path) -> dict[str, str]:
    return {
        "XDG_CACHE_HOME": str(open_folder / "cache"),
        "TMPDIR": str(open_folder / "tmp"),
        "PYTHONPATH": str(project / "runner"),
    }


@pytest.fixture
def image_of(built_image: BuiltImage, open_folder: Path) -> Callable[[str], str]:
    """The image that was built for an engine; a SIF where an ordinary user may read it."""

    def image(engine: str) -> str:
        built = built_image(engine)
        if engine != "apptainer":
            return built
        own = open_folder / f"test-{os.getpid()}.sif"  # of this process: what it leaves running is looked for by name
        if not own.exists():
            try:
                own.hardlink_to(built)  # hundreds of MB, which are then in memory once
            except OSError:  # another file system
                shutil.copy(built, own)
        return str(own)

    return image


@pytest.fixture
def engine_options(image_of: Callable[[str], str]) -> Callable[[str], list[str]]:
    """The options that choose an engine and its image; skips where the engine is missing."""

    def options(engine: str) -> list[str]:
        return ["--engine", engine, "--sif" if engine == "apptainer" else "--image", image_of(engine)]

    return options


@pytest.fixture(scope="session")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What to give to ``--data``: the real data from the user's cache, the system or Debian, else synthetic.

    What has to be unpacked goes into a cache of the test session's own.
    """
    with pytest.MonkeyPatch.context() as patch:
        if USERS["XDG_CACHE_HOME"] is None:
            patch.delenv("XDG_CACHE_HOME", raising=False)
        users = dataset.cache_folder()
        try:
            return dataset.find(str(users), lambda text: None).location
        except InputError:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("data")))
            return dataset.find(None, lambda text: None).location
