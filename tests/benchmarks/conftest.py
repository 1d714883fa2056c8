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

from benchmarks import script
from tests.conftest import Cli

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
def in_process(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a benchmark starts as ``python -m runner ARGUMENTS`` runs in this process."""

    def start(argv: list[str], cwd: Path, **_: object) -> subprocess.CompletedProcess[str]:
        return cli(*argv[3:], cwd=cwd)

    monkeypatch.setattr(script, "subprocess", SimpleNamespace(run=start, DEVNULL=None))
