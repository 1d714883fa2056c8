"""Does the tuner find the best of a grid, in a quarter of the time that it takes to measure the whole grid?

The grid is measured once, to its last candidate. Then the tuner searches the same space, each time with another seed
and with a quarter of the grid's time for all that it does, confirmation included. What it wrote and the grid's optimum
are then measured side by side, on fresh samples.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import page, script
from benchmarks.results import Line, Results
from runner import profile, record
from runner.arguments import count
from runner.blocks import block_ratios, recorded_design
from runner.commands.measuring import TIMEOUT_S
from runner.engines.base import PROJECT
from runner.errors import InputError
from runner.plan import Plan
from runner.statistics.sequential import at_end
from runner.tuning import profile_file
from runner.tuning.session import CHOSEN_FILE

SPACE, GRID_BLOCKS, SEARCHES, SIDE_BLOCKS, QUARTER = "coarse", 8, 3, 20, 4
OPTIMUM = "grid-optimum"
CLOSE = 0.97


def main() -> int:
    parser = script.parser("tune_against_grid", str(__doc__).splitlines()[0], "tune")
    parser.add_argument("--space", default=SPACE, help=f"the grid (default: {SPACE})")
    parser.add_argument("--grid-blocks", metavar="N", type=count, default=GRID_BLOCKS,
                        help=f"looks at each of the grid's candidates (default: {GRID_BLOCKS})")  # fmt: skip
    parser.add_argument("--searches", metavar="N", type=count, default=SEARCHES, help=f"(default: {SEARCHES})")
    parser.add_argument("--side-blocks", metavar="N", type=count, default=SIDE_BLOCKS,
                        help=f"blocks in which what was found is compared (default: {SIDE_BLOCKS})")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=count, help="timed steps of each sample (default: the tuner's)")
    parser.add_argument("--warmup-steps", metavar="N", type=count, help="untimed steps before them")
    parser.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    parser.add_argument("--python", metavar="PATH", help="the workers' interpreter (default: this one)")
    arguments = parser.parse_args()
    settings = {"machine": page.machine(), "space": arguments.space, "grid_blocks": arguments.grid_blocks}
    results = Results(arguments.results, settings)
    folder = arguments.results.with_suffix("")
    if not results.of("grid"):
        results.append("grid", **_grid(folder / "grid", arguments))
    grid = results.of("grid")[0]
    for seed in range(1, arguments.searches + 1):
        if not results.of("search", seed=seed):
            budget_s = grid["seconds"] / QUARTER
            results.append("search", seed=seed, **_search(folder, seed, budget_s, arguments))
    if not results.of("side"):
        for line in _side_by_side(folder, arguments):
            results.append("side", **line)
    page.write(arguments.page, _page(results, arguments))
    return 0


def _runner(*argv: object, folder: Path, command: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a command of the runner prints as JSON; it goes on with what an earlier, interrupted one left."""
    begun = folder / record.FILE_NAME
    if begun.exists() and b"\n" in begun.read_bytes():
        options = [command, "--resume", folder]
    else:
        options = [command, *argv, "--output", folder]
        for name in ("steps", "warmup_steps", "data", "python"):
            value = getattr(arguments, name)
            options += [f"--{name.replace('_', '-')}", value] if value is not None else []
    result = subprocess.run(
        [sys.executable, "-m", "runner", *map(str, options), "--json"],
        cwd=PROJECT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if result.returncode != 0:
        said = (result.stderr.strip().splitlines() or ["nothing"])[-1]
        raise InputError(f"{folder}: runner {command} ended with exit status {result.returncode}: {said}")
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def _grid(folder: Path, arguments: argparse.Namespace) -> Line:
    options = ("--space", arguments.space, "--exhaustive", "--blocks", arguments.grid_blocks)
    found = _runner(*options, folder=folder, command="tune", arguments=arguments)
    best = found["candidates"][0]
    _told(f"grid: {len(found['candidates'])} candidates, {found['search_s']:.0f} s; the best {best['title']}")
    return {
        "seconds": found["search_s"],
        "candidates": len(found["candidates"]),
        "failed": len(found["failed"]),
        "optimum": best["title"],
        "ranking": [[one["title"], round(one["speedup"], 4)] for one in found["candidates"]],
    }


def _search(folder: Path, seed: int, budget_s: float, arguments: argparse.Namespace) -> Line:
    written = folder / f"search-{seed}.yaml"
    options = ("--space", arguments.space, "--budget", f"{budget_s:.0f}s", "--seed", seed, "--profile", written)
    found = _runner(*options, folder=folder / f"search-{seed}", command="tune", arguments=arguments)
    events = record.read(folder / f"search-{seed}/{record.CONFIRMATION}")
    seconds = found["search_s"] + sum(event.get("worker_seconds", 0.0) for event in events)
    loaded = profile.load(str(written))
    _told(f"search {seed}: {len(found['candidates'])} candidates, {seconds:.0f} s; {loaded.title}")
    return {
        "seconds": round(seconds, 1), "search_s": found["search_s"], "candidates": len(found["candidates"]),
        "found": loaded.title.partition(": ")[2], "won": found["best"], "budget_s": round(budget_s, 1),
    }  # fmt: skip


def _side_by_side(folder: Path, arguments: argparse.Namespace) -> list[Line]:
    """Each search's profile against the grid's optimum, from one run with the baseline."""
    chosen = profile.load(str(folder / "grid" / CHOSEN_FILE))
    optimum = folder / f"{OPTIMUM}.yaml"
    profile_file.write(chosen, "The best candidate of the grid.", str(folder / "grid"), optimum)
    names = [f"search-{seed}" for seed in range(1, arguments.searches + 1)]
    files = [optimum, *(folder / f"{name}.yaml" for name in names)]
    options = (*files, "--blocks", arguments.side_blocks, "--timeout", f"{TIMEOUT_S:g}s")
    _runner(*options, folder=folder / "side", command="bench", arguments=arguments)
    events = record.read(folder / "side")
    plan, fixed = Plan.from_json(events[0]["plan"]), recorded_design(events, Plan.from_json(events[0]["plan"]))
    of = {arm.name: arm for arm in plan.arms}
    lines = []
    for name in (OPTIMUM, *names):
        reference = "baseline" if name == OPTIMUM else OPTIMUM
        ratios = block_ratios(events, replace(plan, arms=(of[reference], of[name])), of[name])
        found = at_end(fixed, ratios, plan.margin, stopped_early=False) if fixed else None
        interval = {"low": found.low, "high": found.high, "blocks": found.blocks} if found else {}
        ratio = found.ratio if found else math.exp(sum(ratios) / len(ratios))
        lines.append({"arm": name, "reference": reference, "ratio": ratio, **interval})
        _told(f"{name}: {_interval(lines[-1])} of {reference}")
    return lines


def _interval(line: Line) -> str:
    if "low" not in line:
        return f"{line['ratio']:.3f} (too few blocks for an interval)"
    return f"{line['ratio']:.3f} ({line['low']:.3f} to {line['high']:.3f})"


def _told(text: str) -> None:
    print(text, flush=True)


def _page(results: Results, arguments: argparse.Namespace) -> list[str]:
    grid, searches = results.of("grid")[0], results.of("search")[: arguments.searches]
    sides = {line["arm"]: line for line in results.of("side")}
    header = ("", "candidates", "time", "share of the grid's time", "speed, times the optimum's", "what it found")
    optimum = f"{_interval(sides[OPTIMUM])} times the baseline's"
    rows = [["the whole grid", str(grid["candidates"]), f"{grid['seconds']:.0f} s", "100%", "1", grid["optimum"]]]
    close = 0
    for line in searches:
        side = sides[f"search-{line['seed']}"]
        close += side["ratio"] >= CLOSE
        share = f"{line['seconds'] / grid['seconds']:.0%}"
        own = [str(line["candidates"]), f"{line['seconds']:.0f} s", share, _interval(side), line["found"]]
        rows.append([f"search, seed {line['seed']}", *own])
    return [
        page.heading("The tuner against a whole grid", QUESTION, results.lines, results.lines[0]["machine"]),
        HOW.format(space=arguments.space, blocks=results.lines[0]["grid_blocks"]),
        "## What came out",
        f"- the grid's optimum: {grid['optimum']}; its speed is {optimum}\n"
        f"- searches whose profile is within 3% of the optimum: {page.share(close, len(searches))}",
        page.table(header, rows, numbers_from=1),
        "## The grid, candidate by candidate",
        "As the grid's own looks have it; the first of so many was lucky too.",
        page.table(("candidate", "speedup"), _ranking(grid["ranking"]), numbers_from=1),
    ]


def _ranking(ranking: Sequence[tuple[str, float]]) -> list[list[str]]:
    return [[title, f"{speedup:.3f}"] for title, speedup in ranking]


QUESTION = """Is what `runner tune` finds as good as the best candidate of a grid that is measured to the last one,
for a quarter of the grid's time?"""
HOW = """## How

The grid is the space `{space}`, each of its candidates looked at in {blocks} rounds (`runner tune --exhaustive`). Each
search is `runner tune --space {space}` with a quarter of the grid's time as its budget, for the search and its
confirmation together. The shipped profiles compete in a search too. Then one run has the baseline, the grid's optimum
and what each search wrote as its arms, in blocks of fresh processes in random order; the intervals are 95% intervals,
and all comparisons share the error rate."""


if __name__ == "__main__":
    sys.exit(script.run("tune_against_grid", main))
