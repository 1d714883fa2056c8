"""The probe in a process of its own, started with the variables it is to see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.worker.evidence.symbols import mapped_files
from tests.conftest import PROJECT

PROBE = "import json; from runner.worker.evidence import variables; print(json.dumps(variables.probe()))"


@pytest.fixture
def probed():
    def run(before="", **given):
        result = subprocess.run(
            [sys.executable, "-S", "-c", f"{before}\n{PROBE}"], env={**os.environ, "PYTHONPATH": str(PROJECT), **given},
            capture_output=True, text=True, check=True, cwd="/",
        )  # fmt: skip
        return json.loads(result.stdout)

    return run


def test_only_variables_that_can_change_the_outcome_are_shown(probed):
    found = probed(OMP_NUM_THREADS="2", KMP_AFFINITY="a=b,c", HARMLESS="x")
    assert found["sensitive"] == {"KMP_AFFINITY": "a=b,c", "OMP_NUM_THREADS": "2"}


def test_what_the_process_sets_itself_later_does_not_count(probed):
    assert probed(before="import os; os.environ['OMP_NUM_THREADS'] = '1'")["sensitive"] == {}


def test_a_program_that_gives_itself_a_title_writes_over_the_block(probed):
    """Then what was kept of it when the program began says more than the kernel shows."""
    before = "from runner.worker import initial_environment as own; own.AT_START = b'OMP_NUM_THREADS=2\\0A=1\\0'"
    assert probed(before=before, KMP_AFFINITY="none")["sensitive"] == {"OMP_NUM_THREADS": "2"}


def test_a_padded_environment_is_read_to_its_end(probed):
    found = probed(ENVKIT_PADDING="x" * 8192, ZZZ="1", TORCH_LAST="2")
    assert found["sensitive"] == {"TORCH_LAST": "2"}


@pytest.mark.parametrize(
    "tunables",
    ["glibc.malloc.hugetlb=1", "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.hugetlb=1"],
)
def test_tunables_are_seen_whole(probed, tunables):
    """The loader of glibc before 2.39 cuts the variable up in the memory that /proc/self/environ shows."""
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


def test_nothing_preloaded(probed):
    assert probed()["preloaded"] == {}
