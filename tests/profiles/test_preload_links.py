"""A library in a folder whose name LD_PRELOAD can't hold is preloaded through a link, and seen as what it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.profiles.messages import PathUnpreloadable
from envkit.profiles.preload_links import linked
from envkit.rendering import text

from tests.conftest import PROJECT

LIBRARY = PROJECT / "runner/envkit/worker/preloads/x86_64/libmkl-dispatch.so"
EVIDENCE = (
    "import json; from envkit.worker.evidence import variables; print(json.dumps(variables.probe()['preloaded']))"
)


@pytest.fixture
def library(tmp_path):
    """A library that a profile can preload, in a folder with a blank and a colon in its name."""
    (tmp_path / "my project:2").mkdir()
    return Path(shutil.copy(LIBRARY, tmp_path / "my project:2"))


def path_of(library):
    return linked({"libraries": {"mkl-dispatch": {"path": str(library)}}})["libraries"]["mkl-dispatch"]["path"]


@pytest.fixture
def exported(cli, simulation, library):
    """What ``envkit env`` has a shell export where jemalloc is that library; or the one line of its refusal."""
    simulation.inspection(libraries={"jemalloc": {"path": str(library), "sha256": "0" * 64}})

    def run():
        result = cli("env", "jemalloc", "--python", simulation.python)
        lines = [line for line in result.stdout.splitlines() if "LD_PRELOAD" in line]
        return lines[0].removeprefix("export LD_PRELOAD=") if lines else result.stderr

    return run


def test_it_is_preloaded_through_a_link_in_the_cache(exported, library, own_surroundings):
    found = Path(exported())
    assert found.parent.parent == own_surroundings / "cache/envkit/preload"
    assert found.resolve() == library
    assert Path(exported()) == found  # again, with the link that is there


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the library is for x86-64")
def test_the_evidence_sees_that_it_is_mapped(library):
    path = path_of(library)
    ran = subprocess.run(
        [sys.executable, "-c", EVIDENCE], cwd=PROJECT, env={**os.environ, "LD_PRELOAD": path}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert (json.loads(ran.stdout), ran.stderr) == ({path: "mapped"}, "")


def test_a_link_that_leads_elsewhere_is_made_anew(library):
    link = Path(path_of(library)).parent
    link.unlink()
    link.symlink_to("/nowhere")
    assert Path(path_of(library)).resolve() == library


def test_a_name_that_needs_no_link_stays(own_surroundings):
    assert path_of("/usr/lib/libjemalloc.so.2") == "/usr/lib/libjemalloc.so.2"
    assert not (own_surroundings / "cache/envkit").exists()


@pytest.mark.parametrize("why", ["blanks", "others", "no room"])
def test_where_there_can_be_no_link_it_is_said_what_to_do(exported, library, tmp_path, monkeypatch, why):
    place = tmp_path / ("my cache" if why == "blanks" else "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    if why == "others":  # who could have it lead to a library of theirs
        (place / "envkit/preload").mkdir(parents=True)
        (place / "envkit/preload").chmod(0o777)
    if why == "no room":
        place.write_text("no folder")
    assert exported() == f"envkit: {text(PathUnpreloadable(str(library)))}\n"
