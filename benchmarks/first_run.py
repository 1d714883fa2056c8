"""The first command on a fresh clone, ``make bench PROFILE=intel-omp``: how long it takes, and whether it answers.

Alone on the machine, and beside a neighbour that spins on all CPUs from the beginning to the end.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from envkit.bench import record
from envkit.bench.study import REFERENCE_PROFILE
from envkit.common.errors import MEASURED
from envkit.engines.base import PROJECT

from benchmarks import neighbour, page, script
from benchmarks.errors import ScriptError
from benchmarks.results import Line, Results

PROFILE = "intel-omp"
PATIENCE_S = 1800.0
OF_MAKE = ("MAKE", "MFLAGS", "ARGS", "ENGINE", "WORKLOAD", "VARIANT", "FROM", "PYTHON")
CASES = {"alone": "alone", "spinning": "beside a neighbour that spins on all CPUs all the time"}


def main() -> int:
    parser = script.parser("first_run", __doc__)
    arguments = parser.parse_args()
    results = Results(arguments.results, {"machine": page.machine()})
    for case in CASES:
        if not results.of("run", case=case):
            with tempfile.TemporaryDirectory(prefix="first-run-") as folder, _neighbour(case):
                commit = _git("rev-parse", "--short", "HEAD")  # what a clone has: nothing that is not committed
                results.append("run", case=case, commit=commit, **_first_run(Path(folder) / "clone"))
            print(_told(results.lines[-1]), flush=True)
    page.write(arguments.page, _page(results))
    return 0


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ScriptError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def _neighbour(case: str) -> AbstractContextManager[object]:
    return neighbour.running(case, PATIENCE_S, rests=False) if case == "spinning" else contextlib.nullcontext()


def _first_run(clone: Path) -> Line:
    """Clone, run the command, and return what was seen; times are in seconds since it was started."""
    _git("clone", "--quiet", str(PROJECT), str(clone))
    # `make first-run` hands its own variables on to all that it starts
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OF_MAKE)}
    begin = time.time()
    command = ["make", "bench", f"PROFILE={PROFILE}"]
    ended = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)
    total_s = time.time() - begin
    if ended.returncode != MEASURED:
        raise ScriptError(f"make bench: ended with exit status {ended.returncode}: {ended.stderr.strip()[-200:]}")
    (folder,) = (clone / "results").iterdir()
    comparison = script.runner("report", folder, purpose=str(folder))["comparisons"][0]
    return {
        **times(record.read(folder), begin),
        "total_s": total_s,
        **comparison["speedup"],
        "verdict": comparison["verdict"],
    }


def times(events: Sequence[record.Event], begin: float) -> Line:
    """When the first worker started, and how much later there was a first ratio (seconds); milliseconds of a step."""
    first = next(event for event in events if event["event"] == "warm-up")
    started = first["time"] - first["worker_seconds"]
    samples = [event for event in events if event["event"] == "sample"]
    ratio = max(event["time"] for event in samples if event["block"] == 0)
    step_s = [event["seconds"] / len(event["step_s"]) for event in samples if event["arm"] == REFERENCE_PROFILE]
    return {
        "setup_s": started - begin,
        "first_ratio_s": ratio - started,
        "step_ms": 1000 * sorted(step_s)[len(step_s) // 2],
    }


def _told(line: Line) -> str:
    return f"{CASES[line['case']]}: {line['verdict']}, {page.interval(line)}, {line['total_s']:.0f} s"


def _page(results: Results) -> list[str]:
    header = ("", "commit", "set-up", "first ratio after", "all", "ms/step", "blocks", "speedup (95% interval)",
              "verdict")  # fmt: skip
    rows = []
    for line in results.of("run"):
        times = [f"{line[name]:.0f} s" for name in ("setup_s", "first_ratio_s", "total_s")]
        cells = [f"{line['step_ms']:.0f}", str(line["blocks"]), page.interval(line), line["verdict"]]
        rows.append([CASES[line["case"]], line["commit"], *times, *cells])
    settings = results.lines[0]
    return [
        page.heading("The first command", __doc__ or "", results.of("run"), settings["machine"]),
        HOW,
        page.table(header, rows, 2),
    ]


HOW = f"""Each line is one clone of a commit in a new folder, and `make bench PROFILE={PROFILE}` in it, as it stands
in the README. Wheels and data were in their caches. *Set-up* is all until the first worker starts: `.venv` is made,
wheels are installed, data are found, profiles are looked at. *First ratio after* counts from then until the first
number is on the screen. *ms/step* is the baseline's median."""


if __name__ == "__main__":
    sys.exit(script.run("first_run", main))
