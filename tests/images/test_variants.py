"""The variants of the image: what images/variants.yaml may say, and that all that it says is locked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.engines.base import PROJECT

from tests.images.conftest import assert_one_clear_line, copy_of_scripts

LOCK, TORCH = "cpu/requirements.lock", "cpu/torch.lock"
# What a release of intel-openmp needs in a release of its own, and nothing else does.
COME_ALONG = ("intel-cmplr-lib-ur", "tcmlib", "umf")
VARIANT = """\
one:
  title: A test
  torch: 2.13.0+cpu
  intel-openmp: 2026.2.0
  libraries: debian
  locks: {packages: cpu/requirements.lock, torch: cpu/torch.lock}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what images/variants.py needs of the project, to change."""
    return copy_of_scripts(tmp_path / "project")


def variants(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tree / "images/variants.py"), *arguments]
    # from anywhere: the paths that it prints are those from the project's folder
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=240)


def write(tree: Path, text: str) -> None:
    (tree / "images/variants.yaml").write_text(text)


def shipped() -> list[str]:
    return [line.split()[0] for line in variants(PROJECT, "list").stdout.splitlines()]


def versions(lock: Path) -> dict[str, set[str]]:
    """The versions of each package of a lock; some have several, for several Pythons."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


def test_there_are_variants_with_a_title_and_the_first_needs_no_name() -> None:
    assert {"conda", "debian"} < set(shipped())
    assert all(len(line.split()) > 2 for line in variants(PROJECT, "list").stdout.splitlines())
    assert variants(PROJECT, "show").stdout == variants(PROJECT, "show", shipped()[0]).stdout


def test_every_file_of_the_image_without_a_name_is_locked() -> None:
    said = dict(line.split(" ", 1) for line in variants(PROJECT, "show").stdout.splitlines())
    locks = [PROJECT / said[name] for name in ("packages_lock", "torch_lock")]
    lines = [line for lock in locks for line in lock.read_text().replace("\\\n", " ").splitlines()]
    packages = [line for line in lines if line and not line.startswith("#")]
    assert len(packages) > 10
    assert all(re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line) for line in packages)
    if "conda_lock" in said:
        assert json.loads((PROJECT / said["conda_lock"]).read_text())["packages"]


@pytest.mark.parametrize("name", shipped())
def test_what_each_shipped_variant_says_is_what_its_locks_have(name: str) -> None:
    result = variants(PROJECT, "show", name)
    assert result.returncode == 0, result.stderr
    said = dict(line.split(" ", 1) for line in result.stdout.splitlines())
    assert said["variant"] == name
    for lock in (said["packages_lock"], said["torch_lock"]):
        assert (PROJECT / lock).is_file()


def test_locks_of_variants_differ_from_the_usual_one_in_what_they_are_for_only() -> None:
    """Else a comparison of two images would compare more than it says."""
    usual = versions(PROJECT / "images" / LOCK)
    others = [line.split() for line in variants(PROJECT, "overrides").stdout.splitlines()]
    assert others
    for lock, requirement in others:
        found = versions(PROJECT / lock)
        name, _, version = requirement.partition("==")
        assert found[name] == {version}
        differing = {package for package in {*usual, *found} if found.get(package) != usual.get(package)}
        assert name in differing <= {name, *COME_ALONG}


def test_what_one_is_made_of(tree: Path) -> None:
    write(tree, VARIANT)
    assert variants(tree, "show", "one").stdout.splitlines() == [
        "variant one", "image_name envkit-cpu:one", "libraries debian", "torch torch==2.13.0+cpu",
        f"packages_lock images/{LOCK}", f"torch_lock images/{TORCH}", "compiler none",
        "variant_base debian:bookworm-slim",
    ]  # fmt: skip


def test_one_with_a_pytorch_for_gpus_is_not_called_after_cpus(tree: Path) -> None:
    shown = variants(tree, "show", "cuda").stdout.splitlines()
    assert {"image_name envkit-cuda", "torch torch==2.13.0", "torch_lock images/cuda/torch.lock"} < set(shown)
    # its locks are made of a file of their own, not of the usual one with another version
    assert "cuda" not in variants(tree, "overrides").stdout


def test_condas_packages_have_a_lock_and_may_have_versions(tree: Path) -> None:
    conda = VARIANT.replace("debian", "conda\n  jemalloc: 5.2.1")
    write(tree, conda.replace("cpu/torch.lock}", "cpu/torch.lock, conda: cpu/c.lock}"))
    result = variants(tree, "show")
    assert {"conda_lock images/cpu/c.lock", "pin jemalloc=5.2.1"} < set(result.stdout.splitlines()), result


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("one:", "One:", "1: 'One' can't be a variant's name"),
        ("  torch: 2.13.0+cpu\n", "", "1: one.torch: is missing"),
        ("  torch:", "  toch:", "3: one.toch: no such key; there are: title, torch, "),
        ("2026.2.0", "2026.2", "4: one.intel-openmp: must be a text; put it in quotes"),
        ("one:", "cuda-1:", "3: cuda-1.torch: 2.13.0+cpu is for CPUs alone; give the variant a name that does not "),
        ("2026.2.0", "latest", "4: one.intel-openmp: 'latest' is no version, such as 5.3.0"),
        ("libraries: debian", "compiler: gcc\n  libraries: debian", "5: one.compiler: 'gcc' is not g++; without one "),
        ("libraries: debian", "libraries: fedora", "5: one.libraries: 'fedora' is neither conda nor debian"),
        ("libraries: debian", "libraries: conda", "6: one.locks: must name a file in images/ for each of: "),
        (", torch: cpu/torch.lock", "", "6: one.locks: must name a file in images/ for each of: packages, torch"),
        ("  title:", "  jemalloc: 5.3.0\n  title:", "2: one.jemalloc: can be chosen of conda's libraries only"),
        ("  title: A test", "  title: A test\n  title: B", "3: the key 'title' appears twice"),
        (VARIANT, "one: 3\n", "1: one: must have the keys title, "),
        (VARIANT, "{}\n", "1: names no variant"),
        (VARIANT, "- one\n", "1: the list of the image's variants is a mapping"),
        (VARIANT, "one: [\n", "not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_file_line_and_key(tree: Path, old: str, new: str, said: str) -> None:
    assert old in VARIANT
    write(tree, VARIANT.replace(old, new, 1))
    assert_one_clear_line(variants(tree, "show"), 2, "images/variants.py: images/variants.yaml:", said)


def test_a_variant_that_there_is_not(tree: Path) -> None:
    write(tree, VARIANT)
    result = variants(tree, "show", "tow")
    assert_one_clear_line(result, 2, "images/variants.yaml: there is no variant 'tow'; there are: one")


@pytest.mark.parametrize(
    ("what", "lock", "fix"), [("packages", LOCK, "images/lock makes it"), ("torch", TORCH, "it is made by hand")]
)
def test_a_lock_that_is_missing(tree: Path, what: str, lock: str, fix: str) -> None:
    write(tree, VARIANT)
    (tree / "images" / lock).unlink()
    said = f"images/variants.yaml: one.locks.{what}: there is no images/{lock}: {fix}"
    assert_one_clear_line(variants(tree, "show", "one"), 2, said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2026.2.0", "2025.3.1", f"one.intel-openmp: is 2025.3.1, and images/{LOCK} has 2026.2.0: correct "),
        ("2.13.0+cpu", "2.14.0+cpu", f"one.torch: is 2.14.0+cpu, and images/{TORCH} has 2.13.0+cpu: correct "),
    ],
)
def test_another_version_than_the_locks(tree: Path, old: str, new: str, said: str) -> None:
    write(tree, VARIANT.replace(old, new))
    assert_one_clear_line(variants(tree, "show"), 2, f"images/variants.yaml: {said}")


def test_a_lock_that_is_none(tree: Path) -> None:
    write(tree, VARIANT)
    (tree / "images" / LOCK).write_text("<html>not found</html>\n")
    assert_one_clear_line(variants(tree, "show"), 2, f"images/{LOCK}: is no lock of Python packages (")


def test_an_unreadable_file(tree: Path) -> None:
    (tree / "images/variants.yaml").unlink()
    assert_one_clear_line(variants(tree, "list"), 2, "images/variants.yaml: can't be read: No such file")


def test_the_lock_of_a_pytorch_for_gpus_is_made_by_a_script(tree: Path) -> None:
    (tree / "images/cuda/torch.lock").unlink()
    said = "cuda.locks.torch: there is no images/cuda/torch.lock: images/lock makes it"
    assert_one_clear_line(variants(tree, "show", "cuda"), 2, said)
