"""The variables that a process was started with; mostly of one that is started with those that it is to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from envkit.worker import initial_environment
from envkit.worker.evidence import variables
from envkit.worker.evidence.symbols import mapped_files

from tests.conftest import CODE_PATH

PROBE = "import json; from envkit.worker.evidence import variables; print(json.dumps(variables.probe()))"


@pytest.fixture
def probed():
    def run(**given):
        result = subprocess.run(
            [sys.executable, "-S", "-c", PROBE], env={**os.environ, "PYTHONPATH": CODE_PATH, **given},
            capture_output=True, text=True, check=True, cwd="/",
        )  # fmt: skip
        return json.loads(result.stdout)

    return run


def test_only_variables_that_can_change_the_outcome_are_shown(probed):
    found = probed(OMP_NUM_THREADS="2", KMP_AFFINITY="a=b,c", HARMLESS="x")
    assert found == {"sensitive": {"KMP_AFFINITY": "a=b,c", "OMP_NUM_THREADS": "2"}, "preloaded": {}}


def test_what_the_process_sets_itself_later_is_told_apart(monkeypatch):
    before = variables.probe()
    monkeypatch.setenv("OMP_MADE_UP", "1")
    monkeypatch.setenv("HARMLESS", "1")
    assert variables.probe() == {**before, "changed": {**before.get("changed", {}), "OMP_MADE_UP": {"now": "1"}}}


def test_what_the_program_has_changed(monkeypatch):
    """``at_torch`` is the value when torch was imported, which need be neither of the two others."""
    block = b"OMP_A=1\0OMP_B=1\0OMP_C=1\0OMP_D=1\0"
    monkeypatch.setattr(initial_environment, "AT_START", block)
    monkeypatch.setattr(os, "environ", {"OMP_A": "1", "OMP_B": "2", "OMP_C": "1"})
    assert variables.probe()["changed"] == {"OMP_B": {"now": "2"}, "OMP_D": {"now": None}}
    monkeypatch.setattr(initial_environment, "AT_TORCH", {"OMP_A": "1", "OMP_B": "1", "OMP_C": "2", "OMP_D": "1"})
    assert variables.probe()["changed"] == {
        "OMP_B": {"now": "2", "at_torch": "1"},
        "OMP_C": {"now": "1", "at_torch": "2"},
        "OMP_D": {"now": None, "at_torch": "1"},
    }


def test_a_program_that_gives_itself_a_title_writes_over_the_block(monkeypatch):
    """Then what was kept of it when the program began says more than the kernel shows."""
    monkeypatch.setattr(initial_environment, "AT_START", b"OMP_MADE_UP=2\0A=1\0")
    assert variables.probe()["sensitive"] == {"OMP_MADE_UP": "2"}


def test_a_padded_environment_is_read_to_its_end(probed):
    found = probed(ENVKIT_PADDING="x" * 8192, ZZZ="1", TORCH_LAST="2")
    assert found["sensitive"] == {"TORCH_LAST": "2"}


def test_tunables_are_seen_whole(probed):
    """The loader of glibc before 2.39 cuts the variable up in the memory that /proc/self/environ shows."""
    tunables = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.hugetlb=1"
    assert probed(GLIBC_TUNABLES=tunables)["sensitive"] == {"GLIBC_TUNABLES": tunables}


@pytest.mark.parametrize("separator", [":", " "])
def test_preloads_that_are_mapped_and_not(probed, tmp_path, separator):
    mapped = next(path for path in mapped_files() if Path(path).name.startswith("libm"))
    broken = tmp_path / "broken.so"
    broken.write_text("no library")
    found = probed(LD_PRELOAD=separator.join([mapped, f"{tmp_path}/none.so", str(broken)]))["preloaded"]
    assert found[mapped] == "mapped"
    assert found[f"{tmp_path}/none.so"].startswith("not mapped: cannot open shared object file")
    assert found[str(broken)].startswith("not mapped: file too short") or "invalid ELF header" in found[str(broken)]
