"""This kit, hyperfine and pyperf on the CNN itself: is it faster under glibc-retain, and by how much?

Nothing is planted here: the tools' answers are held against each other, and their intervals, for the same time.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from envkit.bench import dataset, requests
from envkit.cli.arguments import count, duration
from envkit.engines.base import WORKER
from envkit.profiles import profile
from envkit.stats.verdict import Verdict
from envkit.worker.request import Train, WorkerRequest

from benchmarks import page, rivals, script, tools
from benchmarks.results import Line, Results

PROFILE = "glibc-retain"
BUDGET_S = 60.0
TRIALS = 10
# What hyperfine and pyperf time, from the start of the process to its end; so few that a minute has several runs.
STEPS = 40


def main() -> int:
    parser = script.parser("rivals_cnn", __doc__)
    parser.add_argument("--trials", metavar="N", type=count, default=TRIALS, help=f"of each tool (default: {TRIALS})")
    parser.add_argument("--budget", metavar="TIME", type=duration, default=BUDGET_S,
                        help=f"of each tool and trial (default: {BUDGET_S:g}s)")  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order (default: 1)")
    parser.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    arguments = parser.parse_args()
    tools.require()
    data = dataset.find(arguments.data, print).location
    settings = {
        "machine": page.machine(), "budget_s": arguments.budget, "versions": tools.versions(), "seed": arguments.seed,
        "data": data, "profile": PROFILE, "steps": STEPS,
    }  # fmt: skip
    results = Results(arguments.results, settings)
    if not results.of("look"):
        with tempfile.TemporaryDirectory(prefix="rivals-") as folder:
            results.append(
                "look", **asdict(tools.look(Path(folder), arguments.budget / 4, training(Path(folder), data)))
            )
    for trial in range(arguments.trials):
        for tool in random.Random(f"{arguments.seed}:{trial}").sample([*tools.TOOLS], len(tools.TOOLS)):
            if not results.of("trial", trial=trial, tool=tool):
                _try(results, trial, tool, arguments.budget, data)
                print(f"{trial + 1}/{arguments.trials}  {_told(results.lines[-1])}", flush=True)
    page.write(arguments.page, _page(results, arguments.trials))
    return 0


def training(folder: Path, data: str) -> list[str]:
    """The command that trains so many steps, without anything set. Its request is written to ``folder``."""
    file = folder / "request.json"
    file.write_text(WorkerRequest(Train("cnn", requests.data(data), steps=STEPS)).line())
    return [sys.executable, str(WORKER), str(file)]


def question(folder: Path, data: str, budget_s: float, cost: tools.Cost) -> tools.Question:
    """Is the training faster with the variables of the profile?"""
    assignments = [f"{name}={value}" for name, value in profile.load(PROFILE).env.items()]
    kit, trained = [PROFILE, "--data", data], training(folder, data)
    return tools.Question(folder, trained, ["env", *assignments, *trained], kit, {}, budget_s, cost)


def _try(results: Results, trial: int, tool: str, budget_s: float, data: str) -> None:
    reading = results.of("look")[0]
    cost = tools.Cost(reading["run_s"], reading["pyperf_process_s"])
    answer = tools.ask(tool, lambda folder: question(folder, data, budget_s, cost))
    results.append("trial", trial=trial, tool=tool, **answer)


def _told(line: Line) -> str:
    outcome_text = line["failure"] or "; ".join(
        f"{reading['name']}: {reading['verdict']} ({_shown(reading)})" for reading in line["readings"]
    )
    return f"{line['seconds']:.1f} s: {outcome_text}"


def _shown(reading: Line) -> str:
    if reading["low"] is None:
        return "no interval"
    return f"{reading['low']:.3f} to " + ("any" if reading["high"] is None else f"{reading['high']:.3f}")


def _page(results: Results, trials: int) -> list[str]:
    lines = [line for line in results.of("trial") if line["trial"] < trials]
    answered = [{**line, "truth": 0.0} for line in lines if not line["failure"]]
    rows = []
    for row in rivals.rows(answered):
        readings = [reading for line in answered for reading in line["readings"] if reading["name"] == row.name]
        middles = [
            (reading["low"] * reading["high"]) ** 0.5
            for reading in readings
            if None not in (reading["low"], reading["high"])
        ]
        faster = sum(reading["verdict"] == Verdict.FASTER for reading in readings)
        rows.append([
            row.name, f"{faster} of {len(readings)}", f"{statistics.median(middles):.3f}" if middles else "-",
            f"{min(middles):.3f} to {max(middles):.3f}" if middles else "-", rivals.shown_width(row.width),
            f"{statistics.fmean(row.seconds):.0f} s",
        ])  # fmt: skip
    header = ("tool", "said faster", "speedup (median)", "from trial to trial", "width", "mean time used")
    settings, cost = results.lines[0], results.of("look")[0]
    how = HOW.format(budget=settings["budget_s"], run_s=cost["run_s"], **settings["versions"])
    return [
        page.heading("Beside hyperfine and pyperf, on the CNN", __doc__ or "", lines, settings["machine"]),
        how,
        page.table(header, rows, 1),
        _every_trial(lines),
    ]


def _every_trial(lines: Sequence[Line]) -> str:
    rows = [
        [str(line["trial"] + 1), reading["name"], reading["verdict"], _shown(reading)]
        for line in lines
        for reading in line["readings"]
        or [{"name": line["tool"], "verdict": line["failure"], "low": None, "high": None}]
    ]
    return page.table(("trial", "tool", "verdict", "interval"), rows)


HOW = f"""Each tool gets {{budget:g}} s per trial, in turns in random order. hyperfine {{hyperfine}} and pyperf
{{pyperf}} time a process that trains {STEPS} steps, as their users would: from its start to its end, so that importing
torch counts, which no profile changes much. One took {{run_s:.1f}} s. The kit gets `envkit bench {PROFILE} --budget`
with {tools.KIT_START_S:g} s less, for its own start. [rivals.md](rivals.md) says how answers are read. The speedup is
the middle of each tool's interval."""


if __name__ == "__main__":
    sys.exit(script.run("rivals_cnn", main))
