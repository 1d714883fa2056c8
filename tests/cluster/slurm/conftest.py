"""Submissions without a cluster: their settings, and the program that Slurm starts on a node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.bench.specification import Specification
from runner.cli.commands.bench import against_baseline
from runner.cluster.slurm.settings import Settings
from runner.engines.base import PROJECT

ID = "c0ffee00"
JOB = "17"


def specification(profile: str, engine: str = "local", **replaced: Any) -> Specification:
    """Of the baseline and one profile."""
    fixed = {"title": "mine", "arms": tuple(against_baseline([profile], engine)), "budget_s": 180.0}
    return Specification(**{**fixed, **replaced})


def settings(**replaced: object) -> Settings:
    fixed: dict[str, object] = {
        "id": ID, "specification": specification("mine", blocks=6), "python": sys.executable, "project": str(PROJECT),
        "digest": None, "nodes": 2, "nodelist": (), "partition": None, "minutes": 15, "options": (),
    }  # fmt: skip
    return Settings(**{**fixed, **replaced})  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a submission."""
    made = tmp_path / "submission"
    made.mkdir()
    return made


@pytest.fixture
def start_node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start what Slurm starts on a node, and return while it runs."""
    processes = []
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))

    def start(folder: Path, node: str = "node1", job: str = JOB, identity: str = ID) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "runner.cli.slurm_node", str(folder), identity], cwd=PROJECT, text=True,
            env={**os.environ, "SLURMD_NODENAME": node, "SLURM_JOB_ID": job}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()
