"""An envkit that pip installed, outside of the checkout, in an environment of its own that has no torch.

It trains with the torch of the tests' own environment, as one that pipx or ``uv tool`` installed does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterable, Iterator
from email import message_from_bytes
from importlib import metadata
from pathlib import Path

import pytest
from envkit.common.extras import EXTRAS
from envkit.common.messages import MissingExtra
from envkit.engines.inspect_image import OLDEST_TORCH
from envkit.engines.messages import NoTorch
from envkit.profiles.messages import NotTuned
from envkit.rendering import text

from tests.conftest import PROJECT
from tests.processes import BRIEF_ENVKIT

Installed = Callable[..., "subprocess.CompletedProcess[str]"]
CORE = {"jsonschema", "msgspec", "numpy", "pyyaml", "rich", "scipy"}
OLDEST = "3.10"
TRAINING = """
import torch
torch.ones(10**6).add_(1)
print(torch.__file__)
"""
TYPED = """
import envkit
in_effect: bool = envkit.check("glibc-retain")
print(in_effect)
"""
BRIEFLY = ("python", "-c", BRIEF_ENVKIT)
# Runs several command lines in one process, which imports the kit once: the exit status and the output of each.
EACH = """
import contextlib, io, json, sys
from envkit.cli import main
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        answers.append((main(words), out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""
# What the kit needs torch for; what such a line leaves out is said before anything starts.
NEED_TORCH = (
    "bench glibc-retain", "matrix", "plan", "plan glibc-retain", "ablate jemalloc-retain", "show glibc-retain",
    "env glibc-retain", "doctor", "breakdown baseline", "loader-grid",
    "exec glibc-retain -- ./train.sh", "advise -- ./train.sh",
)  # fmt: skip


def pythons() -> dict[str, str]:
    """The oldest Python for which the kit is, and the newest that is here, by version; the tests' own stands for none.

    They are looked for on the PATH, and where pyenv keeps its own. Every process of the tests does so when it collects
    them: only the Pythons that may be the oldest or the newest by their names are started.
    """
    named = [path for folder in os.get_exec_path() for path in Path(folder).glob("python3.*")]
    named += sorted(Path.home().glob(".pyenv/versions/*/bin/python3.*"))
    by_version: dict[tuple[int, ...], list[Path]] = {sys.version_info[:2]: [Path(sys.executable)]}
    for path in named:
        if re.fullmatch(r"python3\.\d+", path.name):
            by_version.setdefault(_number(path.name.removeprefix("python")), []).append(path)
    fitting = sorted(version for version in by_version if version >= _number(OLDEST))
    ends = (_first_that_starts(by_version, order) for order in (fitting, fitting[::-1]))
    return dict(ends)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _first_that_starts(by_version: dict[tuple[int, ...], list[Path]], order: list[tuple[int, ...]]) -> tuple[str, str]:
    """Return the first version of ``order`` that has a Python which makes environments, and that Python."""
    asked = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    for version in order:
        name = ".".join(map(str, version))
        for path in by_version[version]:
            if path == Path(sys.executable):
                return name, str(path)
            said = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
            if (said.returncode, said.stdout.strip()) == (0, name):
                return name, str(path)
    raise AssertionError("not even the tests' own Python makes environments")


PYTHONS = pythons()


def built(source: Path, folder: Path) -> Path:
    """Return the wheel of ``source``, an sdist or a copy of a checkout."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(source)], check=True, timeout=240)
    return next(folder.glob("envkit-*.whl"))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git tracks of the project, and a profile that was tuned on this machine."""
    folder = tmp_path_factory.mktemp("checkout") / "envkit"
    without = shutil.ignore_patterns("__pycache__", "local")
    for name in ("runner", "envprofiles"):
        shutil.copytree(PROJECT / name, folder / name, symlinks=True, ignore=without)
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(PROJECT / name, folder)
    (folder / "envprofiles/local").mkdir()
    (folder / "envprofiles/local/vm-tuned.yaml").write_text("name: vm-tuned\n")
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(checkout, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def from_sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=checkout, check=True, timeout=240, capture_output=True)
    return built(next(folder.glob("envkit-*.tar.gz")), folder)


@pytest.fixture(scope="module", params=PYTHONS, ids=str)
def environment(
    request: pytest.FixtureRequest, wheel: Path, from_sdist: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A new virtual environment with the wheel and what it needs, beside packages that the kit must not import.

    The newest Python gets the wheel of the sdist.
    """
    folder = tmp_path_factory.mktemp("installed") / "venv"
    python = PYTHONS[request.param]
    chosen = from_sdist if request.param == [*PYTHONS][-1] else wheel
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=240)
    # all that SciPy has would be compiled, most of it for nothing
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", "--no-compile"]
    packages = next(folder.glob("lib/python*/site-packages"))
    own = python == sys.executable
    if own:
        for name in needed(CORE):
            link(metadata.distribution(name), packages)
    without_registry = ["--no-deps", "--no-index"] if own else []
    done = subprocess.run(
        [*pip, *without_registry, str(chosen)], capture_output=True, text=True, timeout=480, check=False
    )
    if done.returncode != 0 and not own:
        pytest.skip(f"no registry has what Python {request.param} needs: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    for name in ("runner", "worker", "resource"):
        (packages / name).mkdir()
        (packages / name / "__init__.py").write_text(f'raise SystemExit("the {name} beside envkit was imported")\n')
    return folder


def needed(names: set[str]) -> set[str]:
    """These distributions, and all that they need here."""
    found: set[str] = set()
    left = [*names]
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name not in found:
            found.add(name)
            required = (line for line in metadata.requires(name) or () if ";" not in line or "python_version" in line)
            left += [match[0] for line in required if (match := re.match(r"[\w.-]+", line)) and _is_here(match[0])]
    return found


def _is_here(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def link(distribution: metadata.Distribution, packages: Path) -> None:
    """Have another environment of the same Python import a distribution of this one."""
    for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
        target = packages / top
        if not target.exists():
            target.symlink_to(Path(str(distribution.locate_file(top))).resolve())


@pytest.fixture
def installed(environment: Path, tmp_path: Path) -> Iterator[Installed]:
    """Run a program of the environment in a folder of its own, with no Python that has torch on the PATH."""
    here = tmp_path / "here"
    here.mkdir()

    def run(
        *arguments: str, program: tuple[str, ...] = ("envkit",), timeout_s: float = 400
    ) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables |= {"XDG_CONFIG_HOME": str(tmp_path / "configuration"), "COLUMNS": "200", "PATH": "/usr/bin:/bin"}
        command = [str(environment / "bin" / program[0]), *program[1:], *arguments]
        return subprocess.run(
            command, check=False, cwd=here, env=variables, capture_output=True, text=True, timeout=timeout_s
        )

    return run


def contents(wheel: Path) -> dict[str, int]:
    """The checksums of a wheel's files by name, without what pip notes of them."""
    with zipfile.ZipFile(wheel) as file:
        return {one.filename: one.CRC for one in file.infolist() if ".dist-info/" not in one.filename}


def refusals(installed: Installed, commands: Iterable[str]) -> dict[str, str]:
    """Return the one line with which bad input ended each of these command lines."""
    typed = [*commands]
    done = installed(json.dumps([line.split() for line in typed]), program=("python", "-c", EACH))
    assert done.returncode == 0, done.stderr
    return {line: _refusal(*answer) for line, answer in zip(typed, json.loads(done.stdout), strict=True)}


def _refusal(status: int, stdout: str, stderr: str) -> str:
    (line,) = stderr.splitlines()
    assert (status, stdout) == (2, "")
    return line.removeprefix("envkit: ")


def test_a_wheel_has_every_file_of_the_package(wheel):
    tracked = subprocess.run(
        ["git", "ls-files", "runner", "envprofiles"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    files = {name.removeprefix("runner/") if name.startswith("runner/") else f"envkit/{name}" for name in tracked}
    files.remove("envkit/envprofiles")
    assert {*contents(wheel)} == files
    assert "envkit/py.typed" in files


def test_a_wheel_from_an_sdist_is_the_same(from_sdist, wheel):
    assert contents(from_sdist) == contents(wheel)


def test_it_needs_the_core_alone_and_lists_the_extras(wheel):
    with zipfile.ZipFile(wheel) as file:
        (name,) = (one for one in file.namelist() if one.endswith(".dist-info/METADATA"))
        about = message_from_bytes(file.read(name))
    required = about.get_all("Requires-Dist") or []
    assert {line for line in required if ";" not in line} == CORE
    by_extra = {match.groups() for line in required if (match := re.fullmatch(r'([\w-]+); extra == "(\w+)"', line))}
    assert by_extra == {*EXTRAS.items(), ("cmeel-mimalloc", "libraries")}  # which nothing imports
    extras = {extra for _, extra in by_extra}
    assert {*(about.get_all("Provides-Extra") or ())} == {*extras, "all"}
    (everything,) = (line for line in required if line.endswith('extra == "all"'))
    assert {*everything.partition("[")[2].partition("]")[0].split(",")} == extras


def test_the_oldest_python_and_the_newest_are_tested():
    assert 1 <= len(PYTHONS) <= 2
    assert all(_number(version) >= _number(OLDEST) for version in PYTHONS)


def test_the_core_works_without_the_extras_and_names_them(installed, environment, tmp_path):
    code = f"import importlib.util as u; print([name for name in {[*EXTRAS, 'torch']} if u.find_spec(name)])"
    printed = subprocess.check_output([environment / "bin/python", "-c", code], text=True, cwd=tmp_path)
    assert printed == "[]\n"
    done = installed("profiles", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert {one["name"] for one in listed} == {path.stem for path in PROJECT.glob("envprofiles/*.yaml")}
    assert {one["from"] for one in listed} == {"shipped"}
    lacking = {
        "tune": ("envkit tune", "optuna"),
        "bench baseline --engine docker": ("--engine docker", "docker"),
        "bench baseline --workload translation": ("--workload translation", "sacrebleu"),
        "report . --html page.html": ("--html", "jinja2"),
        "report . --png page.png": ("--png", "matplotlib"),
        "export --format parquet --output x": ("--format parquet", "pyarrow"),
    }
    assert refusals(installed, lacking) == {
        command: text(MissingExtra(needed_by, package, EXTRAS[package]))
        for command, (needed_by, package) in lacking.items()
    }
    assert [*(tmp_path / "here").iterdir()] == []


def test_without_torch_one_line_says_what_is_needed_and_nothing_is_left(installed, environment, tmp_path):
    (tmp_path / "here/train.sh").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "here/train.sh").chmod(0o755)
    for command, line in refusals(installed, NEED_TORCH).items():
        untold = "./train.sh" if " -- " in command else None
        assert line == text(NoTorch(str(environment / "bin/python"), OLDEST_TORCH, "PATH", untold)), command
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["train.sh"]
    assert not (tmp_path / "configuration").exists()


def test_a_profile_of_this_machine_is_kept_in_the_users_configuration_folder(installed, tmp_path):
    folder = tmp_path / "configuration/envkit/profiles"
    done = installed("show", "tuned")
    refused = _refusal(done.returncode, done.stdout, done.stderr)
    assert refused == text(NotTuned(f"{folder}/{os.uname().nodename}-tuned.yaml"))
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: mine\ntitle: mine\nwhy: {reason: a test}\nextends: glibc-retain\n")
    shown = installed("show", "mine", "--python", sys.executable)
    assert shown.returncode == 0, shown.stderr
    assert "glibc.malloc.mmap_threshold" in shown.stdout
    listed = {one["name"]: one["from"] for one in json.loads(installed("profiles", "--json").stdout)}
    assert listed["mine"] == "user"


def test_a_command_runs_under_a_profile_with_the_torch_and_the_libraries_of_its_python(installed, tmp_path):
    (tmp_path / "here/train.py").write_text(TRAINING)
    done = installed("exec", "glibc-retain", "--", sys.executable, "train.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(sysconfig.get_path("purelib"))
    assert "glibc-retain was in effect in 1 process" in done.stderr
    done = installed("exec", "--no-check", "intel-omp", "--", sys.executable, "-c", "import os; print(os.environ)")
    assert f"{sys.prefix}/lib/libiomp5.so" in done.stdout, done.stderr


def test_a_training_is_watched_with_the_torch_of_its_python(installed):
    training = [sys.executable, str(PROJECT / "tests/scripts/plain_loop.py"), "--steps", "1000000"]
    advised = installed("advise", "--watch-only", "--json", "--", *training, program=BRIEFLY)
    assert advised.returncode == 0, advised.stderr
    assert json.loads(advised.stdout)["expected"]


def test_another_interpreter_is_measured_with_its_own_torch(installed):
    few = ("--blocks", "1", "--steps", "1", "--warmup-steps", "1", "--data", "synthetic")
    done = installed("bench", "glibc-retain", "--python", sys.executable, *few, program=BRIEFLY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " verified in every process" in done.stdout


def test_types_are_known_to_who_imports_it(environment, tmp_path):
    (tmp_path / "script.py").write_text(TYPED)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(environment / "bin/python")]
    done = subprocess.run([*mypy, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "script.py").write_text(TYPED.replace("bool", "str"))
    done = subprocess.run([*mypy, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
