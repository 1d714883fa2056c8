"""A command of one's own under a profile, by the command line."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.conftest import PROJECT, command_line
from tests.processes import Ended

PYTHON_PATH = f"{PROJECT}:{{}}"
# A torch with as much as the witness asks for: the real one takes seconds to import.
TORCH = """
class _Tensor:
    def add_(self, number): pass
def zeros(count, device): return _Tensor()
def get_num_threads(): return 1
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Profiles and a cache for all tests here: looking into the interpreter takes most of a second."""
    folder = tmp_path_factory.mktemp("exec")
    head = "title: A test\nwhy:\n  reason: A test.\n  source: here\n"
    (folder / "mine.yaml").write_text(f"name: mine\n{head}env:\n  GREETING: hello\n  MKL_NUM_THREADS: 1\n")
    (folder / "wrong.yaml").write_text(f"name: wrong\n{head}expect:\n  malloc.allocator: jemalloc\n")
    (folder / "prefixed.yaml").write_text(f"name: prefixed\n{head}prefix: [env, FROM_PREFIX=yes]\n")
    (folder / "preloads.yaml").write_text(f"name: preloads\n{head}preload: [mkl-dispatch]\n")
    (folder / "torchs.yaml").write_text(f"name: torchs\n{head}env:\n  LRU_CACHE_CAPACITY: 1\n")
    (folder / "torch.py").write_text(TORCH)
    return folder


@pytest.fixture(autouse=True)
def surroundings(shared, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    monkeypatch.setenv("PYTHONPATH", PYTHON_PATH.format(shared))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def execute(shared):
    """``execute("mine", "echo", "hello")`` runs that, with options of exec before it; its result."""

    def run(profile, *command, options=(), stdin="", **variables):
        path = shared / f"{profile}.yaml"
        result = subprocess.run(
            command_line("exec", *options, path if path.exists() else profile, "--", *command), input=stdin,
            env={**os.environ, **variables}, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert "Traceback" not in result.stderr, result.stderr
        return Ended(result.args, result.returncode, result.stdout, result.stderr)

    return run


def in_a_terminal(shared, script):
    """Start a shell script under a profile in a terminal of its own; the runner's process, and the terminal."""
    pid, terminal = os.forkpty()
    if pid == 0:
        arguments = command_line("exec", shared / "mine.yaml", "--", "sh", "-c", script)
        os.execv(arguments[0], arguments)
    return pid, terminal


def read_until(terminal, word):
    """What is read up to that word, and no more than what came with it."""
    seen = b""
    while word not in seen:
        seen += os.read(terminal, 1000)
    return seen
