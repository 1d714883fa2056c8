"""Submissions without a cluster: their settings, and the program that Slurm starts on a node."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.study import StoppingRule, Study, WorkloadSpec
from envkit.cli import slurm_node
from envkit.cli.measuring_options import against_baseline
from envkit.cluster.slurm.settings import Settings
from envkit.common.errors import InputError
from envkit.tuning.session import SPACE_FILE
from envkit.tuning.study import SearchSettings, TuningStudy

from tests import records
from tests.conftest import CODE_PATH, PROJECT
from tests.tuning.planted_engine import SMALL_SPACE, planted, ship

ID = "c0ffee00"
JOB = "17"
# A spin count is good, and on node2 a little more so.
GAIN, MORE = 0.30, 0.02
NODES = ("node1", "node2")


def study(profile: str, engine: str = "local", **replaced: Any) -> Study:
    """Of the baseline and one profile."""
    rule = {name: replaced.pop(name) for name in ("budget_s", "blocks", "margin") if name in replaced}
    stopping = StoppingRule(**{"budget_s": 180.0, "open_ended": True, **rule})
    length = WorkloadSpec(replaced.pop("warmup_steps", 0), replaced.pop("steps", 0))
    made = Study(title=replaced.pop("title", "mine"), stopping=stopping, **replaced)
    return made.with_arms(against_baseline([profile], engine)).with_lengths(length)


def settings(**replaced: object) -> Settings:
    fixed: dict[str, object] = {
        "id": ID, "study": study("mine", blocks=6), "python": sys.executable,
        "project": str(PROJECT / "runner"), "digest": None, "nodes": 2, "nodelist": (), "partition": None,
        "minutes": 15, "options": (),
    }  # fmt: skip
    return Settings(**{**fixed, **replaced})  # type: ignore[arg-type]


def submission_in(folder: Path, **replaced: object) -> Path:
    """Write the sealed record of a submission with these settings; returns its folder."""
    document = settings(**replaced).to_json()
    records.write(folder, [{"event": "submit", "time": 1.0, "schema": record.SCHEMA, "settings": document}])
    records.seal(folder)
    return folder


def submitted_as(folder: Path) -> str:
    """The SHA-256 that the batch script has of what is submitted in this folder, before anybody edits that."""
    try:
        return Settings.read(folder).sha256
    except InputError:
        return "0" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a submission."""
    made = tmp_path / "submission"
    made.mkdir()
    return made


@pytest.fixture
def on_node(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Do in this process what Slurm starts on a node: returns the exit status, and what is printed on stderr."""

    def run(
        node: str, *options: str, identity: str = ID, sha256: str | None = None, **variables: str
    ) -> tuple[int, str]:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGURG, signal.SIGTERM, signal.SIGHUP)}
        with monkeypatch.context() as patch, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            for name, value in {"SLURMD_NODENAME": node, "SLURM_JOB_ID": JOB, **variables}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["slurm_node", str(folder), identity, sha256 or submitted_as(folder), *options])
            patch.chdir(PROJECT)
            try:
                status = slurm_node.main()
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return status, said.getvalue()

    return run


@pytest.fixture
def start_node(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start what Slurm starts on node1, and return while it runs."""
    processes = []
    monkeypatch.setenv("PYTHONPATH", CODE_PATH)

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "envkit.cli.slurm_node", str(folder), ID, submitted_as(folder)], cwd=PROJECT,
            text=True, env={**os.environ, "SLURMD_NODENAME": "node1", "SLURM_JOB_ID": JOB}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


# --- tunings ---


def gain(variables):
    more = MORE if os.environ.get("SLURMD_NODENAME") == "node2" else 0.0
    return (GAIN + more) * (variables.get("GOMP_SPINCOUNT") == "1000")


@pytest.fixture
def engine(simulation, monkeypatch):
    return planted(monkeypatch, simulation, gain)


@pytest.fixture
def shipped(tmp_path, monkeypatch, write_profile):
    return ship(monkeypatch, tmp_path / "shipped", write_profile, known="env: {OMP_WAIT_POLICY: passive}\n")


@pytest.fixture
def written(tmp_path):
    return tmp_path / "work-tuned.yaml"


@pytest.fixture
def submitted(folder, tmp_path, engine, shipped, written):
    """Write a submission of a tuning by two nodes."""

    def write(budget_s=100.0, space=SMALL_SPACE, **replaced):
        (folder / SPACE_FILE).write_text(space)
        made = Study(title="tune-small", stopping=StoppingRule(budget_s, open_ended=True), data="synthetic", seed=1)
        trained = made.with_arms([Arm("baseline", "baseline", "local")]).with_lengths(WorkloadSpec(0, 3))
        asked = TuningStudy(trained, SearchSettings(budget_s, "same", 0, str(written)), str(folder / SPACE_FILE), False)
        made = settings(study=trained, tuning=asked, **replaced)
        made.write(folder)
        with record.Record.create(folder) as opened:
            opened.append_sealed("submit", schema=record.SCHEMA, command=["envkit"], settings=made.to_json())

    return write


@pytest.fixture
def stage(on_node):
    """Run a stage on these nodes, one after the other: what each ended with."""
    return lambda name, nodes=NODES: [
        on_node(node, name, SLURM_NODEID=str(number))[0] for number, node in enumerate(nodes)
    ]
