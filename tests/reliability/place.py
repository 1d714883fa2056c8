"""A folder of its own in which the command line measures with simulated workers, and what came of it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envkit.bench import record
from envkit.bench.decide import ENDED
from envkit.bench.record import FILE_NAME, Event
from envkit.cli import main
from envkit.common.errors import InputError

from tests.conftest import CODE_PATH, PROJECT
from tests.simulation import Simulation, times

TIMEOUT_S = 300
PROFILE = """name: mine
title: A profile whose workers are twice as fast
why:
  reason: A test.
  source: here
env:
  SIMULATED: mine
"""
ARMS = {"baseline", "mine"}


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it printed, the messages on stderr without the place's own name."""

    status: int
    output: str
    messages: list[str]

    @property
    def last(self) -> str:
        return self.messages[-1].removeprefix("envkit: ") if self.messages else ""


class Place:
    """``run`` is the folder of the run that ``bench`` records."""

    def __init__(self, folder: Path, delay_s: float = 0.01) -> None:
        """Workers take ``delay_s`` seconds besides what it takes to start them."""
        self.folder = folder
        self.run = folder / "run"
        (folder / "simulation").mkdir(parents=True)
        self.simulation = Simulation(folder / "simulation")
        self._take(delay_s)
        (folder / "mine.yaml").write_text(PROFILE)

    def _take(self, delay_s: float) -> None:
        self.simulation.worker("baseline", delay=delay_s)
        self.simulation.worker("mine", seconds=times(0.5), delay=delay_s)

    def hurry(self) -> None:
        """Let workers that start from now on take no time of their own."""
        self._take(0.0)

    @property
    def record(self) -> Path:
        return self.run / FILE_NAME

    def bench(self, *options: object) -> list[object]:
        """The arguments that start a run: of three blocks, unless ``options`` say another length."""
        fixed = ["--python", self.simulation.python, "--data", "synthetic", "--seed", 7, "--steps", 3]
        length = [] if {"--blocks", "--budget"} & {*options} else ["--blocks", 3]
        return ["bench", self.folder / "mine.yaml", *fixed, *length, "--output", self.run, *options]

    def resume(self) -> list[object]:
        return ["bench", "--resume", self.run]

    def start(self, arguments: Sequence[object], temporary: str = "tmp", prelude: str = "") -> subprocess.Popen[str]:
        """Start ``runner ARGUMENTS``. ``prelude`` is Python that runs in the same process first."""
        (self.folder / temporary).mkdir(exist_ok=True)
        program = ["-c", f"{prelude}\nimport sys\nfrom envkit.cli import main\nsys.exit(main())"]
        return subprocess.Popen(
            [sys.executable, *(program if prelude else ["-m", "envkit"]), *map(str, arguments)],
            cwd=PROJECT, env=self.environment(temporary), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def environment(self, temporary: str = "tmp") -> dict[str, str]:
        """Nothing of the caller's that could change what happens. Where TMPDIR differs, so does the machine's lock."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": CODE_PATH,
            "TMPDIR": str(self.folder / temporary),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "HOME": str(self.folder),
        }

    def answer(self, process: subprocess.Popen[str]) -> Answer:
        output, messages = process.communicate(timeout=TIMEOUT_S)
        return self._answer(process.returncode, output, messages)

    def _answer(self, status: int, output: str, messages: str) -> Answer:
        shown = messages.replace(f"{self.folder}/", "").replace(str(self.folder), ".")
        said = [line for line in shown.splitlines() if not line.endswith(" ms per step")]
        return Answer(status, output, said)

    def ask(self, *arguments: object, temporary: str = "tmp", prelude: str = "") -> Answer:
        """Run ``runner ARGUMENTS`` to its end."""
        return self.answer(self.start(arguments, temporary, prelude))

    def read(self, *arguments: object) -> Answer:
        """Run ``envkit ARGUMENTS``, which only reads, in this process: to start one takes several times as long."""
        output, messages = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages):
            status = main([*map(str, arguments)])
        return self._answer(status, output.getvalue(), messages.getvalue())

    def events(self) -> list[Event]:
        """What is recorded; nothing where no whole line is."""
        try:
            return record.read(self.run)
        except InputError:
            return []

    def samples(self) -> list[Event]:
        return [event for event in self.events() if event["event"] == "sample"]

    def whole_lines(self) -> bytes:
        """The record without a half line at its end."""
        content = self.record.read_bytes() if self.record.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    def measured(self, samples: int) -> bytes:
        """Measure, and then keep no more than so many samples, as a kill would have left it; returns the record."""
        answer = self.ask(*self.bench())
        assert answer.status == 0, answer
        lines = self.record.read_bytes().splitlines(keepends=True)
        numbers = [number for number, event in enumerate(self.events()) if event["event"] == "sample"]
        kept = b"".join(lines[: numbers[samples - 1] + 1])
        self.record.write_bytes(kept)
        return kept

    def incomplete(self) -> list[str]:
        """What is wrong with a run that should be complete, with each sample once and no process left."""
        wrong = []
        ends = [event["reason"] for event in self.events() if event["event"] == "end"]
        if not ends or ends[-1] not in ENDED:
            wrong.append(f"it did not end as a complete run does: {ends[-1:]}")
        found = Counter((event["block"], event["arm"]) for event in self.samples())
        blocks = 1 + max((block for block, _ in found), default=-1)
        wrong += [f"{one} is there {times} times" for one, times in found.items() if times > 1]
        wrong += [
            f"{(block, arm)} is missing" for block in range(blocks) for arm in sorted(ARMS) if not found[block, arm]
        ]
        report = self.read("report", self.run, "--json")
        counted = sum(one["samples"] for one in json.loads(report.output)["measured"]) if report.status == 0 else None
        if counted != len(found):
            wrong.append(f"the report counts {counted} samples and the record has {len(found)}: {report.last}")
        return wrong + self.left()

    def left(self) -> list[str]:
        """Name the processes that were started from here and still run: their environment names this folder."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                mine = f"{self.folder}/".encode() in (entry / "environ").read_bytes()
            except OSError:  # gone meanwhile, or another user's
                continue
            if mine and int(entry.name) != os.getpid():
                found.append(f"process {entry.name} is left")
        return found
