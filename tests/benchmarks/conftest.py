"""Running a benchmark's script inside this process."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks import interleaved, script
from tests.conftest import Cli
from tests.instant_engine import InstantEngine

Benchmark = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def benchmark_script(monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """Run ``python -m benchmarks.NAME ARGUMENTS``, given the module."""

    def run(module: ModuleType, *arguments: object) -> subprocess.CompletedProcess[str]:
        name = module.__name__.rpartition(".")[2]
        argv = [str(module.__file__), *map(str, arguments)]
        stdout, stderr = io.StringIO(), io.StringIO()
        handler = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patch, contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            patch.setattr(sys, "argv", argv)
            try:
                status = script.run(name, module.main)
            except SystemExit as end:  # argparse
                status = int(end.code or 0)
            finally:
                signal.signal(signal.SIGTERM, handler)
        return subprocess.CompletedProcess(argv, status, stdout.getvalue(), stderr.getvalue())

    return run


@pytest.fixture
def results_file(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


@pytest.fixture
def files(results_file: Path, page_file: Path) -> list[object]:
    """The options that say where a benchmark keeps what it measures, and its page."""
    return ["--results", results_file, "--page", page_file]


@pytest.fixture
def instant_bench(instant: InstantEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``interleaved.Bench`` starts answers in this process."""
    monkeypatch.setattr(interleaved, "LocalEngine", instant)


def refusal(result: subprocess.CompletedProcess[str]) -> str:
    """The line with which a benchmark ended as after bad input."""
    lines = result.stderr.splitlines()
    assert (result.returncode, len(lines)) == (2, 1), result
    return lines[0]


@pytest.fixture
def in_process(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a benchmark starts as ``python -m envkit ARGUMENTS`` runs in this process."""

    def start(argv: list[str], cwd: Path, **_: object) -> subprocess.CompletedProcess[str]:
        return cli(*argv[3:], cwd=cwd)

    monkeypatch.setattr(script, "subprocess", SimpleNamespace(run=start, DEVNULL=None))
