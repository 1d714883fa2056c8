"""All that is installed in an image, by what package managers leave behind."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

from envkit.worker.image import conda_packages, inspect, python_packages, system_packages, torch_build

from tests.worker.made_up import write

STATUS = """\
Package: libjemalloc2
Status: install ok installed
Version: 5.3.0-1
Description: general-purpose scalable concurrent malloc
 Version: of nothing, this is the description

Package: removed
Status: deinstall ok config-files
Version: 1.0

Package: half-there
Status: install ok half-configured
Version: 1.0

Package: libc6
Status: hold ok installed
Version: 2.36-9+deb12u9
"""


def test_debians_packages_are_those_that_are_installed(tmp_path: Path) -> None:
    assert system_packages(tmp_path) == {}  # as another system has none that are known
    write(tmp_path, {"var/lib/dpkg/status": STATUS})
    assert system_packages(tmp_path) == {"libjemalloc2": "5.3.0-1", "libc6": "2.36-9+deb12u9"}


def test_condas_packages_are_found_beside_the_interpreter_too(tmp_path: Path) -> None:
    for path, name in (("conda-meta/a.json", "python"), ("conda/conda-meta/b.json", "jemalloc")):
        write(tmp_path, {path: json.dumps({"name": name, "version": "5.3.0", "build": "h0_0"})})
    write(tmp_path, {"conda-meta/history": ""})
    assert conda_packages(tmp_path) == {"python": "5.3.0 h0_0", "jemalloc": "5.3.0 h0_0"}


def test_packages_of_python_have_one_spelling() -> None:
    found = python_packages()
    assert found["numpy"] == metadata.version("numpy")
    assert found["typing-extensions"] == metadata.version("typing_extensions")
    assert not any(set(name) & set("_.ABCDEFGHIJKLMNOPQRSTUVWXYZ") for name in found)


def test_pytorch_says_from_which_commit_it_was_built() -> None:
    import torch

    assert torch_build()["git_version"] == torch.version.git_version
    assert "cuda" not in torch_build()  # this is the build for CPUs


def test_an_inspection_has_all_this_only_where_it_is_asked_for() -> None:
    assert "contents" not in inspect(())
    assert inspect((), with_contents=True)["contents"].keys() == {"torch", "python", "conda", "system"}
