"""The hook in programs of other Pythons: 3.8 and later leave evidence and steps, and no older one is harmed."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.worker import stand_in_torch

KIT = PROJECT / "runner"
HOOK = KIT / "envkit/worker/evidence_hook"
OLDEST = (3, 8)
TRAIN = """
import torch
torch.zeros = lambda *sizes, **options: torch
torch.add_ = lambda number: None
torch.__version__ = "2.9.0"
torch.get_num_interop_threads, torch.cuda.is_initialized = lambda: 1, lambda: False
torch.are_deterministic_algorithms_enabled, torch.get_float32_matmul_precision = lambda: False, lambda: "highest"
import ctypes
class Block:
    def __init__(self):
        self.block = ctypes.create_string_buffer(2**22)
    def fill_(self, value): return self
    def data_ptr(self): return ctypes.addressof(self.block)
torch.empty, torch.uint8, torch.float32 = lambda *sizes, **options: Block(), 0, 1
class version: cuda = hip = None
class config:
    show = staticmethod(lambda: "PyTorch built with:")
    parallel_info = staticmethod(lambda: "ATen/Parallel:")
class backends:
    class mkldnn: is_available = staticmethod(lambda: False)
    class mkl: is_available = staticmethod(lambda: False)
    class openmp: is_available = staticmethod(lambda: True)
torch.version, torch.__config__, torch.backends = version, config, backends
sgd = torch.optim.SGD()
for step in range(1, 100):
    sgd.step()
print("end")
"""
VERSIONS = "import sys; print('.'.join(map(str, sys.version_info[:2])))"


def imported_by_the_hook() -> Iterator[Path]:
    """All files that the hook imports in a program."""
    waiting = [*HOOK.glob("*.py"), KIT / "envkit/worker/evidence/__init__.py"]
    known = set()
    while waiting:
        path = waiting.pop()
        if path in known or not path.exists():
            continue
        known.add(path)
        yield path
        names = []
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("envkit"):
                names += [str(node.module), *(f"{node.module}.{one.name}" for one in node.names)]
        for name in names:
            parts = name.split(".")
            waiting += [KIT.joinpath(*parts[:count], "__init__.py") for count in range(1, len(parts) + 1)]
            waiting.append(KIT.joinpath(*parts).with_suffix(".py"))


@pytest.fixture(scope="module")
def pythons() -> dict[str, str]:
    """Other interpreters on this machine, by version."""
    folders = [*Path("~/.pyenv/versions").expanduser().glob("*/bin"), Path("/usr/bin"), Path("/usr/local/bin")]
    found: dict[str, str] = {}
    known = set()
    for path in sorted(one for folder in folders for one in folder.glob("python*")):
        if re.fullmatch(r"python\d(\.\d+)?", path.name) and path.resolve() not in known:
            known.add(path.resolve())
            asked = subprocess.run([path, "-c", VERSIONS], capture_output=True, text=True, check=False)
            if asked.returncode == 0:
                found.setdefault(asked.stdout.strip(), str(path))
    return found


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@pytest.fixture
def run(tmp_path):
    """Run a training under the hook by an interpreter: what it printed, and what it left, by the kind of document."""

    def program(python):
        folder = tmp_path / "evidence"
        folder.mkdir()
        (stand_in_torch.write(tmp_path) / "train.py").write_text(TRAIN)
        variables = {"ENVKIT_STEPS": "steps:1:3:0.001", "ENVKIT_EVIDENCE": str(folder), "PYTHONPATH": str(HOOK)}
        process = subprocess.run(
            [python, "train.py"], cwd=tmp_path, env=os.environ | variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        left = {path.suffix: json.loads(path.read_text()) for path in folder.iterdir() if path.stat().st_size}
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        return process, left

    return program


def errors(evidence):
    return {name: one["error"] for name, one in evidence.items() if isinstance(one, dict) and "error" in one}


def test_the_syntax_of_all_that_it_imports_is_that_of_the_oldest():
    files = set(imported_by_the_hook())
    for path in files:
        ast.parse(path.read_text(), path, feature_version=OLDEST)
    # the probes are among them
    assert {"sitecustomize.py", "optimizer_steps.py", "openmp.py", "host.py", "readings.py"} <= {
        path.name for path in files
    }


def test_it_leaves_the_same_evidence_and_steps(run, pythons):
    _, expected = run(sys.executable)
    for version, python in pythons.items():
        if number(version) < OLDEST:
            continue
        process, left = run(python)
        assert (process.returncode, process.stderr) == (0, ""), version
        assert left[".steps"]["complete"], version
        assert len(left[".steps"]["step_s"]) >= 3, version
        assert left[".json"]["argv"][1:] == ["train.py"], version
        assert left[".json"]["evidence"].keys() == expected[".json"]["evidence"].keys(), version
        assert errors(left[".json"]["evidence"]) == {}, version


def test_older_ones_are_not_harmed(run, pythons):
    for version, python in pythons.items():
        if number(version) < OLDEST:
            process, _ = run(python)
            assert process.returncode == 0, version
            assert "Traceback" not in process.stderr, version


def test_why_there_is_no_evidence_is_one_line_without_escape_codes():
    said = (
        "import runpy, sys; print(runpy.run_path(sys.argv[1])['_no_evidence'](ValueError('\\x1b[2J\\a\\rtwo\\nthree')))"
    )
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("ENVKIT")}
    command = [sys.executable, "-c", said, str(HOOK / "sitecustomize.py")]
    found = subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, check=True).stdout
    assert found == b"envkit: no evidence: ValueError: \\x1b[2J\\x07 two three\n"
