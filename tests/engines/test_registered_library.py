"""A library is added by one entry of the registry, a profile and, where it has settings of its own, one probe.

An allocator and a BLAS, both compiled here, are added so to a copy of the kit. Everything else that it does with
libraries, it does with these two.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.engines.conftest import UNFINISHED
from tests.engines.test_doctor import FROM_OUTSIDE

COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler is here to make the two libraries with")
SOURCES = PROJECT / "tests/engines/stub_libraries"
ENTRIES = """\
    "stuballoc": Library(
        kind="allocator",
        files=("libstuballoc.so.1",),
        shows=("malloc.allocator", "stuballoc"),
        packages={"debian": "libstuballoc1"},
        profile="stuballoc",
        reads=("STUBALLOC_CACHE",),
        source="https://example.org/stuballoc",
        settings="stuballoc:settings",
    ),
    "stubblas": Library(
        kind="blas",
        files=("libstubblas.so",),
        shows=("blas.implementation", "stubblas"),
        packages={"conda": "stubblas"},
    ),
"""
PROBE = """\
from envkit.worker.evidence.symbols import function


def settings():
    return {"STUBALLOC_CACHE": function("stuballoc_cache")()}
"""
HEAD = "title: A test\nwhy: {reason: A test., source: 'https://example.org'}\n"
PROFILES = {
    "stuballoc": "preload: [stuballoc]\nenv: {STUBALLOC_CACHE: 64}\n"
    "expect: {malloc.allocator: stuballoc, malloc.settings.STUBALLOC_CACHE: 64}\n",
    "stubblas": "preload: [stubblas]\nexpect: {blas.implementation: stubblas}\n",
    "stub-both": "preload: [stuballoc, stubblas]\nenv: {STUBALLOC_CACHE: 64}\nexpect: {malloc.allocator: stuballoc, "
    "malloc.settings.STUBALLOC_CACHE: 64, blas.implementation: stubblas}\n",
}
Kit = Callable[..., "subprocess.CompletedProcess[str]"]


def compile_library(source: Path, made: Path) -> None:
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-fno-builtin", "-w", "-o", made, source], check=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kit with the two libraries in its registry, and a Python that has them in its own folder."""
    place = tmp_path_factory.mktemp("registered")
    shutil.copytree(PROJECT / "runner/envkit", place / "kit/envkit", ignore=UNFINISHED)
    registry = place / "kit/envkit/worker/libraries.py"
    before, end, after = registry.read_text().partition("\n}  # fmt: skip\n")
    registry.write_text(f"{before}\n{ENTRIES}{end.lstrip()}{after}")
    (place / "kit/envkit/worker/evidence/stuballoc.py").write_text(PROBE)
    for name, text in PROFILES.items():
        (place / f"kit/envkit/envprofiles/{name}.yaml").write_text(f"name: {name}\n{HEAD}{text}")
    (place / "python/bin").mkdir(parents=True)
    (place / "python/bin/python").symlink_to(sys.executable)
    packages = Path(pytest.__file__).parent.parent
    (place / "python/lib" / packages.parent.name).mkdir(parents=True)
    (place / "python/lib" / packages.parent.name / packages.name).symlink_to(packages)
    (place / "python/pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    compile_library(SOURCES / "stuballoc.c", place / "python/lib/libstuballoc.so.1")
    compile_library(SOURCES / "stubblas.c", place / "python/lib/libstubblas.so")
    return place


@pytest.fixture
def kit(place: Path, tmp_path: Path) -> Kit:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": str(place / "kit")}
        command = [place / "python/bin/python", "-m", "envkit", *map(str, arguments)]
        result = subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=240, check=False
        )
        assert "Traceback" not in result.stderr, result.stderr
        return result

    return run


@pytest.fixture
def without(place: Path):
    """``without(name)``: the library's file lies elsewhere until the test ends; it can be another one meanwhile."""
    moved: list[Path] = []

    def hide(name: str) -> Path:
        path = place / "python/lib" / name
        path.rename(path.with_name(f"hidden-{name}"))
        moved.append(path)
        return path

    yield hide
    for path in moved:
        path.with_name(f"hidden-{path.name}").replace(path)


def train(kit: Kit, place: Path, profile: str) -> subprocess.CompletedProcess[str]:
    """Whatever it trains: the kit looks as soon as torch is there."""
    return kit("exec", profile, "--", place / "python/bin/python", "-c", "import torch")


def test_show(kit: Kit, place: Path) -> None:
    shown = json.loads(kit("show", "stub-both", "--json").stdout)
    assert shown["preload"] == {
        "stuballoc": f"{place}/python/lib/libstuballoc.so.1", "stubblas": f"{place}/python/lib/libstubblas.so",
    }  # fmt: skip
    assert shown["variables"]["STUBALLOC_CACHE"] == "64"


@pytest.mark.parametrize(
    ("profile", "file", "way"),
    [
        ("stuballoc", "libstuballoc.so.1", "apt-get install libstuballoc1"),
        ("stubblas", "libstubblas.so", "conda install -c conda-forge stubblas"),
    ],
)
def test_one_that_is_not_installed_comes_with_the_way_to_get_it(kit: Kit, without, profile, file, way) -> None:
    without(file)
    result = kit("show", profile)
    assert (result.returncode, result.stderr.rstrip().endswith(f"; get it with: {way}")) == (2, True), result.stderr


def test_a_variable_that_only_the_registry_has(kit: Kit) -> None:
    document = json.loads(kit("explain", "STUBALLOC_CACHE", "--json").stdout)
    assert document["read_by"] == {"stuballoc": "any"}
    assert document["profiles"] == {"stuballoc": "64", "stub-both": "64"}
    assert (document["verified_by"], document["here"]) == ("malloc.settings.STUBALLOC_CACHE", 0)


def test_doctor_has_nothing_against_them(kit: Kit) -> None:
    assert {one["code"] for one in json.loads(kit("doctor", "stub-both", "--json").stdout)} <= FROM_OUTSIDE


@pytest.mark.parametrize(
    ("profile", "checked"),
    [
        ("stuballoc", "preload.stuballoc, malloc.allocator, malloc.settings.STUBALLOC_CACHE"),
        ("stubblas", "preload.stubblas, blas.implementation"),
    ],
)
def test_exec_verifies_them(kit: Kit, place: Path, profile: str, checked: str) -> None:
    result = train(kit, place, profile)
    assert result.returncode == 0, result.stderr
    assert f"{profile} was in effect in 1 process (checked: {checked}" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("profile", "file", "content", "unmet"),
    [
        ("stuballoc", "libstuballoc.so.1", None, "malloc.allocator"),  # the loader can't read it
        ("stubblas", "libstubblas.so", None, "blas.implementation"),
        ("stuballoc", "libstuballoc.so.1", "int other;", "malloc.allocator"),  # mapped, but nothing calls it
        ("stubblas", "libstubblas.so", "int other;", "blas.implementation"),
    ],
)
def test_exec_tells_where_they_are_not_in_effect(kit, place, without, tmp_path, profile, file, content, unmet) -> None:
    path = without(file)
    if content is None:
        path.write_text("not a library")
    else:
        (tmp_path / "other.c").write_text(content)
        compile_library(tmp_path / "other.c", path)
    result = train(kit, place, profile)
    said = " ".join(result.stderr.split())
    assert f"{profile} was NOT in effect" in said, said
    assert unmet in said, said
    assert (f"preload.{profile}" in said) == (content is None), said


def test_ablation_and_the_tuner_know_what_they_set(kit: Kit, place: Path, tmp_path: Path) -> None:
    """What needs what, what is expected of each setting alone, and a level of the default space for the allocator."""
    (tmp_path / "code.py").write_text(
        "import json\n"
        "from envkit.profiles import ablation, profile\n"
        "from envkit.tuning import space_file\n"
        "both = profile.load('stub-both')\n"
        "settings = [(one.name, one.needs, ablation.alone(both, one).expect) for one in ablation.settings(both)]\n"
        "(levels,) = [one.levels for one in space_file.read(space_file.find('default')).parameters\n"
        "             if one.name == 'allocator']\n"
        "print(json.dumps([settings, levels['stuballoc'].preload, dict(levels['stuballoc'].expect)]))\n"
    )
    result = subprocess.run(
        [place / "python/bin/python", tmp_path / "code.py"], env={**os.environ, "PYTHONPATH": str(place / "kit")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    allocator, cache = {"malloc.allocator": "stuballoc"}, {"malloc.settings.STUBALLOC_CACHE": 64}
    settings, *level = json.loads(result.stdout)
    assert settings == [
        ["stuballoc", None, allocator],
        ["STUBALLOC_CACHE", "stuballoc", {**allocator, **cache}],
        ["stubblas", None, {"blas.implementation": "stubblas"}],
    ]
    assert level == [["stuballoc"], allocator]


def test_env_prints_what_sets_them(kit: Kit, place: Path) -> None:
    assert f"libstuballoc.so.1:{place}/python/lib/libstubblas.so" in kit("env", "stub-both").stdout


def test_bench(kit: Kit, tmp_path: Path) -> None:
    """By small batches, as the BLAS made here is slow."""
    result = kit(
        "bench", "stub-both", "--workload", "loader-w0-b4", "--warmup-steps", "1", "--steps", "2", "--blocks", "1",
        "--output", tmp_path / "run",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
