"""Start envkit on a small program that people had trouble with, and compare what it says with the right answer."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envkit.engines.base import PROJECT
from envkit.profiles.environment import clean

from tests.processes import BRIEF_ENVKIT

PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT_S = 600  # beside other tests everything takes longer
SHOWN_CHARACTERS = 300
# A training is measured in this many blocks where its times are not the point.
FEW = ("--blocks", "1", "--in-place", "--seed", "3")
# How train.py trains unless a launch says otherwise. `envkit advise` needs an optimizer of PyTorch.
BRIEF = {"STEPS": "40", "OPTIMIZER": "none"}
ADVISED = {"TRAIN_S": "60", "OPTIMIZER": "torch"}  # it is ended when it was watched


@dataclass(frozen=True)
class Launch:
    """One command of envkit, and its right answer.

    ``words`` are those behind ``envkit``, and ``under`` a command that starts it. ``@PYTHON@`` stands for this Python.
    ``says`` are words that it prints, whatever line breaks it puts between them, and ``never`` words that it must not
    print. ``env`` is what the user's shell exports.
    """

    words: str
    says: tuple[str, ...]
    status: int = 0
    never: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    under: str = ""


@dataclass(frozen=True)
class Case:
    """A program that people had trouble with. ``files`` are written beside the programs, by name.

    One that ``needs_root`` makes a control group, or mounts something.
    """

    name: str
    title: str
    launches: tuple[Launch, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    needs_root: bool = False

    @property
    def can_run(self) -> bool:
        return not self.needs_root or os.geteuid() == 0


@dataclass(frozen=True)
class Outcome:
    """What envkit said of a launch, in words for a table."""

    launch: Launch
    said: str
    right: bool


def try_out(case: Case, launch: Launch) -> Outcome:
    """Run a launch in a fresh folder with all programs, and tell whether the answer is right."""
    with tempfile.TemporaryDirectory(prefix="envkit-case-") as name:
        folder = Path(name)
        place = folder / "training"
        shutil.copytree(PROGRAMS, place, ignore=shutil.ignore_patterns("__pycache__"))
        for file, text in case.files.items():
            (place / file).write_text(text.replace("@PYTHON@", sys.executable))
        (folder / "tmp").mkdir()
        shell, _ = clean(os.environ, ())
        variables = {"PYTHONPATH": str(PROJECT / "runner"), "TMPDIR": str(folder / "tmp"), **BRIEF}
        line = f"{launch.under} {shlex.quote(sys.executable)} -c {shlex.quote(BRIEF_ENVKIT)} {launch.words}"
        result = subprocess.run(
            shlex.split(line.replace("@PYTHON@", sys.executable)), cwd=place, env={**shell, **variables, **launch.env},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    said = " ".join(result.stdout.split())
    right = result.returncode == launch.status and all(words in said for words in launch.says)
    right = right and not any(words in said for words in launch.never)
    shown = " … ".join(launch.says) if right else f"WRONG: …{said[-SHOWN_CHARACTERS:]}"
    return Outcome(launch, f"{shown} (exit {result.returncode})", right)
