"""The three tools that are compared, each asked the same: which of two commands is faster?

Each is used as its documentation says, on the same commands, and its answer is read as its users read it:

envkit     the verdict in its JSON, and the interval beside it.
hyperfine  has no verdict. It prints ``1.05 ± 0.02 times faster``, the ratio of two means and its standard deviation (of
           single runs, by error propagation). One reading takes a difference for found where ratio - 1 is more than
           that deviation, another where it is more than twice that.
pyperf     ``compare_to`` says faster, slower or not significant, by a two-sample t-test at 95%. It prints no interval;
           the one given here is the one that belongs to that test.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from envkit.bench.record import FILE_NAME
from envkit.engines.base import PROJECT
from envkit.stats.verdict import Verdict

from benchmarks import burner
from benchmarks.errors import ScriptError

BURNER = Path(burner.__file__).resolve()
# What the first command has in the variable WORK.
WORK = 1.0
# The kit times the steps after these; the other tools time the whole process.
WARMUP_STEPS = 2
# pyperf's own defaults, but for its number of processes, which has to fit the budget.
PYPERF_WARMUPS, PYPERF_VALUES = 1, 3
HYPERFINE_WARMUPS = 1
HYPERFINE_SIGMAS = (1, 2)
# The kit's budget is for its workers: it takes about so long to start, and to look at what it starts, besides.
KIT_START_S = 1.0
# What the kit says where its first blocks took so long that the budget has no room for an interval.
TOO_SHORT = "refused: the budget is too short"


class ToolFailed(Exception):
    """A tool ended badly or printed what is not understood."""


@dataclass(frozen=True)
class Cost:
    """What one run of the burner takes, and one process of pyperf besides the runs in it; seconds."""

    run_s: float
    pyperf_process_s: float

    def hyperfine_runs(self, budget_s: float) -> int:
        """Timed runs of each of the two commands."""
        return max(2, round(budget_s / 2 / self.run_s) - HYPERFINE_WARMUPS)

    def pyperf_processes(self, budget_s: float) -> int:
        """Processes for each of the two commands."""
        process_s = self.pyperf_process_s + (PYPERF_WARMUPS + PYPERF_VALUES) * self.run_s
        return max(2, round(budget_s / 2 / process_s))


@dataclass(frozen=True)
class Question:
    """Two commands, and ``kit``, what ``envkit bench`` is given to measure the same; ``variables`` are for all of them.

    ``folder`` is for what the tools write, ``cost`` what one run of the first command takes.
    """

    folder: Path
    first: list[str]
    second: list[str]
    kit: list[str]
    variables: dict[str, str]
    budget_s: float
    cost: Cost


@dataclass(frozen=True)
class Reading:
    """One way to read a tool's answer. ``low`` and ``high`` bound the speedup (first time over second), if they do."""

    name: str
    verdict: str
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Answer:
    """What a tool said, and the times (seconds) of each command that it said it from."""

    readings: list[Reading]
    times: list[list[float]]


def patience_s(budget_s: float) -> float:
    """A neighbour may slow a tool down; where it takes longer than this it hangs."""
    return 10 * budget_s + 60


def python() -> list[str]:
    """The interpreter of every burner: -I and -S leave out what would only make it start more slowly."""
    return [sys.executable, "-I", "-S", str(BURNER)]


def command(extra: float) -> list[str]:
    return ["env", f"WORK={_work(extra)}", *python()]


def _work(extra: float) -> str:
    return f"{WORK * (1 + extra):.4f}"


def require() -> None:
    """Raise InputError where a rival is missing."""
    if shutil.which("hyperfine") is None:
        raise ScriptError("hyperfine is not installed; get it with: apt-get install hyperfine")
    if subprocess.run([sys.executable, "-c", "import pyperf"], capture_output=True, check=False).returncode:
        raise ScriptError("pyperf is not installed; 'make dev' installs it")


def versions() -> dict[str, str]:
    from importlib.metadata import version

    printed = subprocess.run(["hyperfine", "--version"], capture_output=True, text=True, check=True).stdout
    return {"hyperfine": printed.split()[-1], "pyperf": version("pyperf")}


def look(folder: Path, seconds: float, command: list[str]) -> Cost:
    """Run ``command`` for so long and pyperf once, to know how many runs fit into a budget."""
    begin = time.monotonic()
    runs = 0
    while runs < 2 or time.monotonic() - begin < seconds:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        runs += 1
    run_s = (time.monotonic() - begin) / runs
    begin = time.monotonic()
    _pyperf_command(folder / "look.json", command, 1, patience_s(seconds))
    elapsed_s = time.monotonic() - begin
    return Cost(
        run_s, max(0.0, elapsed_s - (PYPERF_WARMUPS + PYPERF_VALUES) * fmean(_pyperf_values(folder / "look.json")))
    )


def more_work(folder: Path, extra: float, budget_s: float, cost: Cost) -> Question:
    """Is the burner with WORK=1+extra slower than with WORK=1?"""
    wrapper = folder / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(python())} "$@"\n')
    wrapper.chmod(0o755)
    profile = folder / "more-work.yaml"
    profile.write_text(
        "name: more-work\ntitle: The burner, with more work\nwhy:\n  reason: A difference that is known.\n"
        f'  source: benchmarks/tools.py\nenv:\n  WORK: "{_work(extra)}"\n'
    )
    kit = [
        str(profile), "--python", str(wrapper), "--data", "synthetic",
        "--warmup-steps", str(WARMUP_STEPS), "--steps", str(burner.STEPS - WARMUP_STEPS),
    ]  # fmt: skip
    # The baseline sets nothing, so what it has to do is inherited.
    return Question(folder, command(0.0), command(extra), kit, {"WORK": _work(0.0)}, budget_s, cost)


def envkit(question: Question) -> Answer:
    record = question.folder / "run"
    workers_s = max(0.1, question.budget_s - KIT_START_S)
    options = ["--budget", f"{workers_s:g}s", "--json", "--output", str(record)]
    try:
        printed = _run([sys.executable, "-m", "envkit", "bench", *question.kit, *options], question)
    except ToolFailed as error:
        if "is too short: a verdict needs" not in str(error):
            raise
        return Answer([Reading("envkit", TOO_SHORT, None, None)], [[], []])  # the machine was too slow for it
    document = json.loads(printed)
    if document["longer_than_budget"]:  # others answer within the budget
        return Answer([Reading("envkit", TOO_SHORT, None, None)], [[], []])
    comparison = document["comparisons"][0]
    interval = comparison["speedup"] or {"low": None, "high": None}
    events = [json.loads(line) for line in (record / FILE_NAME).read_text().splitlines()]
    times = [
        [event["seconds"] for event in events if event["event"] == "sample" and event["arm"] == arm]
        for arm in (document["reference"], comparison["arm"])
    ]
    return Answer([Reading("envkit", comparison["verdict"], interval["low"], interval["high"])], times)


def hyperfine(question: Question) -> Answer:
    runs = question.cost.hyperfine_runs(question.budget_s)
    exported = question.folder / "hyperfine.json"
    _run(
        [
            "hyperfine", "--shell=none", "--warmup", str(HYPERFINE_WARMUPS), "--runs", str(runs),
            "--export-json", str(exported), shlex.join(question.first), shlex.join(question.second),
        ],
        question,
    )  # fmt: skip
    first, second = json.loads(exported.read_text())["results"]
    deviation = ((first["stddev"] / first["mean"]) ** 2 + (second["stddev"] / second["mean"]) ** 2) ** 0.5
    return Answer(
        [hyperfine_reading(first["mean"] / second["mean"], deviation, sigmas) for sigmas in HYPERFINE_SIGMAS],
        [first["times"], second["times"]],
    )


def hyperfine_reading(ratio: float, deviation: float, sigmas: int) -> Reading:
    """``ratio`` is the first command's mean over the second's, ``deviation`` its standard deviation as a share of it.

    hyperfine prints the ratio the way that it is above 1, so that is where its users put the error.
    """
    above, error = max(ratio, 1 / ratio), sigmas * deviation
    verdict = Verdict.NOT_FOUND if above * (1 - error) <= 1 else Verdict.FASTER if ratio > 1 else Verdict.SLOWER
    ends = (above * (1 - error), above * (1 + error))
    if ends[0] <= 0:  # so uncertain that it is no bound
        return Reading(f"hyperfine, {sigmas} sigma", verdict, None, None)
    low, high = ends if ratio > 1 else (1 / ends[1], 1 / ends[0])
    return Reading(f"hyperfine, {sigmas} sigma", verdict, low, high)


def pyperf(question: Question) -> Answer:
    processes = question.cost.pyperf_processes(question.budget_s)
    paths = [question.folder / "first.json", question.folder / "second.json"]
    for path, argv in zip(paths, (question.first, question.second), strict=True):
        _pyperf_command(path, argv, processes, patience_s(question.budget_s))
    printed = _run([sys.executable, "-m", "pyperf", "compare_to", *map(str, paths)], question)
    times = [_pyperf_values(path) for path in paths]
    return Answer([Reading("pyperf", pyperf_verdict(printed), *t_interval(*times))], times)


def pyperf_verdict(printed: str) -> Verdict:
    """What ``compare_to`` says of the second file."""
    if re.search(r"not significant|no change", printed, re.IGNORECASE):
        return Verdict.NOT_FOUND
    match = re.search(r"\d+\.\d+x (faster|slower)", printed)
    if match is None:
        raise ToolFailed(f"pyperf compare_to printed {printed.strip()!r}")
    return Verdict(match.group(1))


def t_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float | None]:
    """Speedups that Student's two-sample t-test (equal variances, 95%), as pyperf has it, would not call significant.

    The difference of the means is taken as a share of the first mean, which counts as known. None where no speedup is
    too large for it: the test can't tell the second mean from 0.
    """
    from scipy import stats

    free = len(first) + len(second) - 2
    error = ((variance(first) + variance(second)) / len(first)) ** 0.5  # both have the same number of values
    reach = float(stats.t.ppf(0.975, free)) * error
    shares = [(fmean(second) + sign * reach) / fmean(first) for sign in (1, -1)]
    return 1 / shares[0], 1 / shares[1] if shares[1] > 0 else None


def _pyperf_command(path: Path, command: list[str], processes: int, timeout_s: float) -> None:
    _checked(
        [
            sys.executable, "-m", "pyperf", "command", "--quiet", "--processes", str(processes), "--loops", "1",
            "--warmups", str(PYPERF_WARMUPS), "--values", str(PYPERF_VALUES), "--output", str(path), "--",
            *command,
        ],
        timeout_s,
        {},
    )  # fmt: skip


def _pyperf_values(path: Path) -> list[float]:
    """The timed values in seconds, of all processes in turn. Format: pyperf's documentation, "JSON file format"."""
    runs = json.loads(path.read_text())["benchmarks"][0]["runs"]
    return [value for run in runs for value in run.get("values", [])]


def _run(argv: list[str], question: Question) -> str:
    # A TMPDIR of its own, as the runner lets one measurement at a time into each.
    return _checked(argv, patience_s(question.budget_s), {"TMPDIR": str(question.folder), **question.variables})


def _checked(argv: list[str], timeout_s: float, variables: dict[str, str]) -> str:
    try:
        result = subprocess.run(
            argv, cwd=PROJECT, env={**os.environ, **variables}, capture_output=True, text=True, timeout=timeout_s,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"{argv[0]} did not end within {timeout_s:g} s") from None
    if result.returncode != 0:
        last_lines = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:] or ["nothing"]
        raise ToolFailed(f"{shlex.join(argv[:5])} … ended with exit status {result.returncode}: {last_lines[0]}")
    return result.stdout


TOOLS: dict[str, Callable[[Question], Answer]] = {"envkit": envkit, "hyperfine": hyperfine, "pyperf": pyperf}


def ask(tool: str, question: Callable[[Path], Question]) -> dict[str, Any]:
    """The seconds that a tool took and its answer, or its failure; ``question`` is asked in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="rivals-") as folder:
        begin = time.monotonic()
        try:
            answer = {"failure": None, **asdict(TOOLS[tool](question(Path(folder))))}
        except ToolFailed as error:
            answer = {"failure": str(error), "readings": [], "times": []}
        return {"seconds": round(time.monotonic() - begin, 2), **answer}
