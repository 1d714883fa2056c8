"""This kit, hyperfine and pyperf on the same two commands, with the same time and a neighbour that comes and goes.

The commands do the same work, or one does a known share more. Whoever says otherwise is wrong; this counts how often.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from envkit.cli.arguments import count, duration
from envkit.stats.verdict import Verdict

from benchmarks import burner, neighbour, page, script, tools
from benchmarks.results import Line, Results

BUDGET_S = 12.0
TRIALS = 20
SCENARIOS = {"on": "a neighbour that comes and goes", "off": "no neighbour"}
NONE_LARGER = "no difference larger than "
# What a verdict can be worth. The last two are right where there is nothing to find.
WRONG, MISSED, FOUND, EXCLUDED, QUIET = "wrong", "missed", "found", "excluded", "quiet"


@dataclass(frozen=True)
class Cell:
    """One trial of one tool. ``truth`` is the percentage of work that the second command does more."""

    trial: int
    neighbour: str
    truth: float
    tool: str


def percentages(text: str) -> list[float]:
    """``0,3`` as [0.0, 3.0]."""
    try:
        percents = [float(part) for part in text.split(",")]
    except ValueError:
        percents = []
    if not percents or not all(0 <= percent <= 100 for percent in percents):
        raise argparse.ArgumentTypeError(f"'{text}' are not percentages from 0 to 100; write for example 0,3")
    return percents


def cells(trials: int, neighbours: Sequence[str], truths: Sequence[float], seed: int) -> Iterator[Cell]:
    """All trials to make; each round has every combination once, in random order."""
    for trial in range(trials):
        once = [Cell(trial, where, truth, tool) for where in neighbours for truth in truths for tool in tools.TOOLS]
        random.Random(f"{seed}:{trial}").shuffle(once)
        yield from once


def outcome(verdict: str, truth: float) -> str:
    """What a verdict is worth, given by how much (percent) the second command is really slower.

    To exclude a difference that is there is as wrong as to find one that is not.
    """
    excluded = verdict.startswith(NONE_LARGER)
    if truth == 0:
        return WRONG if verdict in (Verdict.FASTER, Verdict.SLOWER) else EXCLUDED if excluded else QUIET
    if verdict == Verdict.SLOWER:
        return FOUND
    margin = float(verdict.removeprefix(NONE_LARGER).rstrip("%")) if excluded else truth
    return WRONG if verdict == Verdict.FASTER or margin < truth else MISSED


def main() -> int:
    parser = script.parser("rivals", __doc__)
    parser.add_argument("--trials", metavar="N", type=count, default=TRIALS,
                        help=f"of each tool, truth and scenario (default: {TRIALS})")  # fmt: skip
    parser.add_argument("--budget", metavar="TIME", type=duration, default=BUDGET_S,
                        help=f"of each tool and trial (default: {BUDGET_S:g}s)")  # fmt: skip
    parser.add_argument("--truths", metavar="PERCENT,…", type=percentages, default=[0.0, 3.0],
                        help="how much more work the second command does (default: 0,3)")  # fmt: skip
    parser.add_argument("--neighbour", choices=("on", "off", "both"), default="both", help="(default: both)")
    parser.add_argument("--at-once", metavar="N", type=count, default=1,
                        help="so many trials at once, each on a CPU of its own (default: 1)")  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order and the neighbour (default: 1)")
    arguments = parser.parse_args()
    if arguments.at_once > len(os.sched_getaffinity(0)):
        parser.error(f"--at-once {arguments.at_once}: there are {len(os.sched_getaffinity(0))} usable CPUs")
    tools.require()
    settings = {
        "machine": page.machine(), "budget_s": arguments.budget, "seed": arguments.seed, "at_once": arguments.at_once,
        "burner_units": burner.UNITS, "versions": tools.versions(),
    }  # fmt: skip
    Results(arguments.results, settings)  # refused here where it has others
    neighbours = list(SCENARIOS) if arguments.neighbour == "both" else [arguments.neighbour]
    planned = list(cells(arguments.trials, neighbours, arguments.truths, arguments.seed))
    if arguments.at_once == 1:
        _measure(planned, settings, arguments)
    else:
        with script.processes(arguments.at_once) as processes:
            numbers = range(arguments.at_once)
            shares = [[cell for cell in planned if cell.trial % arguments.at_once == number] for number in numbers]
            measuring = [
                processes.submit(_measure, share, settings, arguments, cpu)
                for share, cpu in zip(shares, sorted(os.sched_getaffinity(0)), strict=False)
            ]
            for future in measuring:
                future.result()
    results = Results(arguments.results, settings)
    wanted = {tuple(asdict(cell).values()) for cell in planned}
    measured = [line for line in results.of("trial") if tuple(line[key] for key in Cell.__annotations__) in wanted]
    page.write(arguments.page, _page(measured, results, arguments))
    return 0


def _measure(planned: Sequence[Cell], settings: Line, arguments: argparse.Namespace, cpu: int | None = None) -> None:
    """Make the trials that are missing, on one CPU if that is given."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    results = Results(arguments.results, settings)
    for number, cell in enumerate(planned, start=1):
        if not results.of("trial", **asdict(cell)):
            if not results.of("look", neighbour=cell.neighbour, cpu=cpu):
                _look(results, cell.neighbour, cpu, arguments)
            _try(results, cell, cpu, arguments)
            print(f"{number}/{len(planned)}  {_told(results.lines[-1])}", flush=True)


def _noise(where: str, seed: str, budget_s: float) -> AbstractContextManager[object]:
    return neighbour.running(seed, tools.patience_s(budget_s)) if where == "on" else nullcontext()


def _look(results: Results, where: str, cpu: int | None, arguments: argparse.Namespace) -> None:
    """Learn what a run takes in this scenario, so that the number of runs can be fitted to the budget."""
    with tempfile.TemporaryDirectory(prefix="rivals-") as folder, _noise(where, "look", arguments.budget):
        results.append(
            "look", neighbour=where, cpu=cpu, **asdict(tools.look(Path(folder), arguments.budget, tools.command(0.0)))
        )


def _try(results: Results, cell: Cell, cpu: int | None, arguments: argparse.Namespace) -> None:
    reading = results.of("look", neighbour=cell.neighbour, cpu=cpu)[0]
    cost = tools.Cost(reading["run_s"], reading["pyperf_process_s"])
    # the same times of the neighbour for each tool: none is to have the bad luck
    noise = _noise(cell.neighbour, f"{arguments.seed}:{cell.trial}:{cell.truth}", arguments.budget)
    with noise:
        answer = tools.ask(cell.tool, lambda folder: tools.more_work(folder, cell.truth / 100, arguments.budget, cost))
    results.append("trial", **asdict(cell), **answer)


def _told(line: Line) -> str:
    outcome_text = line["failure"] or "; ".join(
        f"{reading['name']}: {reading['verdict']}" for reading in line["readings"]
    )
    return f"neighbour {line['neighbour']}, {line['truth']:g}% more work, {line['seconds']:.1f} s: {outcome_text}"


@dataclass(frozen=True)
class Row:
    """All trials of one reading of one tool. ``widths`` are half-widths as a share of the speedup, or infinite."""

    name: str
    outcomes: list[str]
    widths: list[float]
    seconds: list[float]

    @property
    def width(self) -> float:
        return statistics.median(self.widths)

    def count(self, kind: str) -> int:
        return self.outcomes.count(kind)


def rows(measured: Sequence[Line]) -> list[Row]:
    """One row for each reading of each tool, of trials in one scenario with one truth. Failed trials are left out."""
    by_name: dict[str, Row] = {}
    for tool in tools.TOOLS:
        for line in measured:
            for reading in line["readings"] if line["tool"] == tool else ():
                row = by_name.setdefault(reading["name"], Row(reading["name"], [], [], []))
                row.outcomes.append(outcome(reading["verdict"], line["truth"]))
                row.seconds.append(line["seconds"])
                row.widths.append(_half_width(reading["low"], reading["high"]))
    return list(by_name.values())


def _half_width(low: float | None, high: float | None) -> float:
    return math.inf if low is None or high is None else (high - low) / 2 / (high * low) ** 0.5


def shown_width(width: float) -> str:
    return f"±{width:.1%}" if width < math.inf else "no interval"


def _page(measured: Sequence[Line], results: Results, arguments: argparse.Namespace) -> list[str]:
    settings = results.lines[0]
    versions = settings["versions"]
    page_parts = [
        page.heading("Beside hyperfine and pyperf", QUESTION, measured, settings["machine"]),
        HOW.format(
            budget=arguments.budget, on=neighbour.ON_S, off=neighbour.OFF_S,
            start=tools.KIT_START_S, warmup=tools.WARMUP_STEPS, steps=burner.STEPS,
            at_once=_at_once(settings["at_once"]), **versions,
        ),
        _runs(results),
    ]  # fmt: skip
    page_parts += ["## All together", _overall(measured)]
    for where in SCENARIOS:
        for truth in sorted({line["truth"] for line in measured if line["neighbour"] == where}):
            here = [line for line in measured if line["neighbour"] == where and line["truth"] == truth]
            page_parts += _section(where, truth, rows(here))
    failures = [line for line in measured if line["failure"]]
    if failures:
        page_parts += ["## Trials that failed", "\n".join(f"- {_told(line)}" for line in failures)]
    return [*page_parts, f"Every trial with its times is a line of `{results.path.name}`, which the command writes."]


QUESTION = (
    "Two commands are given to three tools: which is faster? They do the same work, or the second does a known share "
    "more. Who says the wrong thing how often, on a quiet machine and beside a neighbour that comes and goes?"
)
HOW = """## How

Both commands are `benchmarks/burner.py`, pure CPU work in one thread; the second has more of it. Each tool gets
{budget:g} s per trial: the kit as `--budget`, less {start:g} s for its own start, hyperfine {hyperfine} and pyperf
{pyperf} as the number of runs and processes that took so long in one look beforehand, in the same scenario. All else is
as the tools have it by default, but hyperfine also gets `--shell=none` and a warm-up run. The tools take turns, in
random order{at_once}. The neighbour (`benchmarks/neighbour.py`) spins on all CPUs that a trial has for {on:g} s and
rests for {off:g} s on average, at random; within a trial each tool meets the same one. Where the kit's first blocks
take so long that its budget has no room for an interval, it says so and gives no verdict: that counts as nothing found.

How the answers are read:

- **envkit**: its verdict. "No difference larger than 2%" where 3% are planted counts as wrong. It times the {steps}
  steps of the work without the first {warmup}; the others time the whole process. Each of its
  samples takes 0.1 s longer to start, for the evidence, and each block has a reference kernel, which is cut to one
  step here (the real one takes a second, for samples of several). It may stop before its time is used up, once it is
  sure.
- **hyperfine** prints `1.05 ± 0.02 times faster` and leaves the verdict to the reader. "1 sigma" takes a difference
  for found where the ratio is further from 1 than that deviation, "2 sigma" where it is further than twice that. The
  deviation is that of single runs, so it does not shrink with more of them.
- **pyperf**: what `compare_to` says (a t-test at 95%). It prints no interval; the width is that of its test.

"Wrong" has its 95% interval (Clopper and Pearson 1934). The width is half of the median interval, as a share of the
speedup; one of 1 sigma is no 95% interval."""


def _at_once(number: int) -> str:
    return "" if number == 1 else f", {number} trials at once, each on a CPU of its own"


def _runs(results: Results) -> str:
    budget_s = results.lines[0]["budget_s"]
    sentences = []
    for reading in results.of("look"):
        cost = tools.Cost(reading["run_s"], reading["pyperf_process_s"])
        where = "" if reading["cpu"] is None else f" on CPU {reading['cpu']}"
        sentences.append(
            f"With {SCENARIOS[reading['neighbour']]}{where}, one run took {reading['run_s']:.3f} s, so for each "
            f"command hyperfine makes {cost.hyperfine_runs(budget_s)} runs and pyperf starts "
            f"{cost.pyperf_processes(budget_s)} processes of {tools.PYPERF_VALUES} values."
        )
    return "\n".join(sentences)


def _overall(measured: Sequence[Line]) -> str:
    """What all scenarios and truths come to."""
    header = ("tool", "wrong verdicts (95% interval)", "found, where there is something", "mean time used")
    real = {row.name: row for row in rows([line for line in measured if line["truth"] > 0])}
    lines = []
    for row in rows(measured):
        shown = f"{row.count(FOUND)} of {len(real[row.name].outcomes)}" if row.name in real else "-"
        used = f"{statistics.fmean(row.seconds):.1f} s"
        lines.append([row.name, page.share(row.count(WRONG), len(row.outcomes)), shown, used])
    return page.table(header, lines, numbers_from=1)


def _section(where: str, truth: float, tool_rows: Sequence[Row]) -> list[str]:
    title = f"## {SCENARIOS[where].capitalize()}, {f'{truth:g}% more work' if truth else 'the same work'}"
    third = ("found", "missed") if truth else ("difference excluded",)
    header = ["tool", "wrong verdicts (95% interval)", *third, "width", "mean time used"]
    lines = []
    for row in tool_rows:
        trials = len(row.outcomes)
        if truth:
            shown = [f"{row.count(FOUND)} of {trials}", str(row.count(MISSED))]
        else:  # the others have no words for it
            shown = [f"{row.count(EXCLUDED)} of {trials}" if row.name == "envkit" else "-"]
        used = f"{statistics.fmean(row.seconds):.1f} s"
        lines.append([row.name, page.share(row.count(WRONG), trials), *shown, shown_width(row.width), used])
    return [title, page.table(header, lines, numbers_from=1), "\n".join(_against(tool_rows, truth))]


def _against(tool_rows: Sequence[Row], truth: float) -> list[str]:
    """Where the kit is behind, counted and not judged."""
    ours = next((row for row in tool_rows if row.name == "envkit"), None)
    if ours is None:
        return []
    behind = []
    for row in tool_rows:
        mistakes, right = row.count(WRONG), row.count(FOUND)
        if mistakes < ours.count(WRONG):
            behind.append(f"{row.name} was wrong less often ({mistakes} times, and the kit {ours.count(WRONG)})")
        if truth and right > ours.count(FOUND):
            behind.append(f"{row.name} found it more often ({right} times, and the kit {ours.count(FOUND)})")
        if row.width < ours.width:
            both = f"{shown_width(row.width)}, and the kit: {shown_width(ours.width)}"
            behind.append(f"{row.name}'s intervals are narrower ({both})")
    return ["Where the kit is behind:", "", *(f"- {text}" for text in behind)] if behind else []


if __name__ == "__main__":
    sys.exit(script.run("rivals", main))
