"""Does the tuner find the best of a grid, in a quarter of the time that it takes to measure the whole grid?

The grid is measured once, to its last candidate. Then the tuner searches the same space, and nothing but it, each time
with another seed and with a quarter of the grid's time for all that it does, confirmation included. What it wrote and
the best few of the grid are then measured side by side, on fresh samples: the first of many candidates was lucky too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from envkit.analysis.noise import interference_by_block
from envkit.bench import dataset, record
from envkit.bench.run import Run, read
from envkit.bench.study import MARGIN, TIMEOUT_S
from envkit.cli.arguments import count
from envkit.profiles import profile
from envkit.stats.sequential import at_end, design
from envkit.tuning import profile_file, space_file
from envkit.tuning.session import SPACE_FILE
from envkit.tuning.space import profile as profile_of
from envkit.worker.fashion_mnist import SYNTHETIC

from benchmarks import page, script
from benchmarks.errors import ScriptError
from benchmarks.results import Line, Results

SPACE, GRID_BLOCKS, SEARCHES, SIDE_BLOCKS, QUARTER = "coarse", 12, 3, 20, 4
# So many of the grid's candidates, the best by its own trials, are measured again; the best of these is the optimum.
TOP = 3
CLOSE = 0.97
MET, OPEN, MISSED = "met", "open", "missed"
OWN = "the tuner's own"


def main() -> int:
    parser = script.parser("tune_against_grid", __doc__, page.PAGES / "tune.md")
    parser.add_argument("--space", default=SPACE, help=f"the grid (default: {SPACE})")
    parser.add_argument("--grid-blocks", metavar="N", type=count, default=GRID_BLOCKS,
                        help=f"trials of each of the grid's candidates (default: {GRID_BLOCKS})")  # fmt: skip
    parser.add_argument("--searches", metavar="N", type=count, default=SEARCHES, help=f"(default: {SEARCHES})")
    parser.add_argument("--side-blocks", metavar="N", type=count, default=SIDE_BLOCKS,
                        help=f"blocks in which what was found is compared (default: {SIDE_BLOCKS})")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=count, help="timed steps of each sample (default: the tuner's)")
    parser.add_argument("--warmup-steps", metavar="N", type=count, help="untimed steps before them")
    script.add_training_options(parser)
    arguments = parser.parse_args()
    _make_absolute(arguments)
    _require_blocks(arguments.side_blocks, TOP * (1 + arguments.searches))
    results = Results(arguments.results, _settings(arguments))
    folder = arguments.results.with_suffix("")
    if not results.of("grid"):
        results.append("grid", **_grid(folder / "grid", arguments))
    grid = results.of("grid")[0]
    for seed in range(1, arguments.searches + 1):
        if not results.of("search", seed=seed):
            budget_s = grid["seconds"] / QUARTER
            results.append("search", seed=seed, **_search(folder, seed, budget_s, arguments))
    if not results.of("side"):
        results.append("side", **_side_by_side(folder, grid["top"], arguments))
    page.write(arguments.page, _page(results))
    return 0


def _make_absolute(arguments: argparse.Namespace) -> None:
    """Paths are taken from where the user is; the runner's commands are started in the project's folder."""
    arguments.results = arguments.results.resolve()
    if arguments.data not in (None, SYNTHETIC):
        arguments.data = str(Path(arguments.data).resolve())
    if arguments.space.endswith((".yaml", ".yml")):
        arguments.space = str(Path(arguments.space).resolve())
    if arguments.python and os.sep in arguments.python:
        arguments.python = str(Path.cwd() / arguments.python)  # not resolved: an environment's interpreter is a link


def _require_blocks(blocks: int, comparisons: int) -> None:
    """Raise InputError, before hours are measured, for too few blocks to give so many intervals at the end."""
    if at_end(design(blocks, comparisons), [0.0] * blocks, MARGIN, stopped_early=False) is None:
        raise ScriptError(f"--side-blocks {blocks}: too few for {comparisons} intervals that hold together; give more")


def _settings(arguments: argparse.Namespace) -> Line:
    """What must stay the same, for the results' first line."""
    location = dataset.find(arguments.data, _told).location
    return {
        "machine": page.machine(), "space": arguments.space, "grid_blocks": arguments.grid_blocks,
        "searches": arguments.searches, "side_blocks": arguments.side_blocks, "steps": arguments.steps or OWN,
        "warmup_steps": arguments.warmup_steps or OWN, "data": SYNTHETIC if location == SYNTHETIC else "Fashion-MNIST",
    }  # fmt: skip


def _runner(*argv: object, folder: Path, command: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """What a command of the runner prints as JSON; it goes on with what an earlier, interrupted one left."""
    if record.is_begun(folder):
        options = ["--resume", folder]
    else:
        options = [
            *argv,
            "--output",
            folder,
            *script.option_words(arguments, "steps", "warmup_steps", "data", "python"),
        ]
    return script.runner(command, *options, purpose=str(folder))


def _grid(folder: Path, arguments: argparse.Namespace) -> Line:
    options = ("--space", arguments.space, "--exhaustive", "--blocks", arguments.grid_blocks)
    document = _runner(*options, folder=folder, command="tune", arguments=arguments)
    best = document["candidates"][0]
    _told(f"grid: {len(document['candidates'])} candidates, {document['search_s']:.0f} s; the best {best['title']}")
    return {
        "seconds": document["search_s"],
        "candidates": len(document["candidates"]),
        "failed": len(document["failed"]),
        "top": [
            {"title": candidate["title"], "choice": candidate["choice"]} for candidate in document["candidates"][:TOP]
        ],
        "ranking": [[candidate["title"], round(candidate["speedup"], 4)] for candidate in document["candidates"]],
    }


def _search(folder: Path, seed: int, budget_s: float, arguments: argparse.Namespace) -> Line:
    written = folder / f"search-{seed}.yaml"
    options = ("--space", arguments.space, "--budget", f"{budget_s:.0f}s", "--seed", seed, "--profile", written,
               "--space-only")  # fmt: skip
    document = _runner(*options, folder=folder / f"search-{seed}", command="tune", arguments=arguments)
    events = record.read(folder / f"search-{seed}/{record.CONFIRMATION}")
    seconds = document["search_s"] + sum(event.get("worker_seconds", 0.0) for event in events)
    loaded = profile.load(str(written))
    _told(f"search {seed}: {len(document['candidates'])} candidates, {seconds:.0f} s; {loaded.title}")
    return {
        "seconds": round(seconds, 1), "search_s": document["search_s"], "candidates": len(document["candidates"]),
        "found": loaded.title.partition(": ")[2], "won": document["best"], "budget_s": round(budget_s, 1),
    }  # fmt: skip


def _side_by_side(folder: Path, top: Sequence[Line], arguments: argparse.Namespace) -> Line:
    """The best few of the grid and what each search wrote, from one run with the baseline.

    ``arms`` has each against the baseline, then each search's against the best one of the grid, the ``optimum``.
    """
    grid = [f"grid-{place}" for place in range(1, len(top) + 1)]
    for name, candidate in zip(grid, top, strict=True):
        _write(folder, candidate["choice"], folder / f"{name}.yaml")
    searches = [f"search-{seed}" for seed in range(1, arguments.searches + 1)]
    files = [folder / f"{name}.yaml" for name in (*grid, *searches)]
    options = (*files, "--blocks", arguments.side_blocks, "--timeout", f"{TIMEOUT_S:g}s", "--seed", 1)
    _runner(*options, folder=folder / "side", command="bench", arguments=arguments)
    run = read(folder / "side")
    study = run.study
    # whichever of the grid comes out best: all that could be compared shares the error rate
    comparisons = len(grid) * (1 + len(searches))
    of_grid = {name: _compared(run, study.reference.name, name, comparisons) for name in grid}
    optimum = max(grid, key=lambda name: of_grid[name]["ratio"])
    _told(f"{optimum}, the best of the grid: {page.interval(of_grid[optimum])} of the baseline")
    against = {name: _compared(run, optimum, name, comparisons) for name in searches}
    for name, effect in against.items():
        _told(f"{name}: {page.interval(effect)} of {optimum}: {_verdict(effect)}")
    hit, blocks = len(interference_by_block(run.samples())), max(effect["blocks"] for effect in of_grid.values())
    effect = {"optimum": optimum, "grid": of_grid, "searches": against}
    return {**effect, "blocks_with_interference": hit, "of": blocks}


def _write(folder: Path, choice: dict[str, str], path: Path) -> None:
    """The profile of one of the grid's candidates."""
    made = profile_of(space_file.read(folder / "grid" / SPACE_FILE), choice, path.stem)
    assert made is not None, "a candidate that was measured can be made again"
    reason, source = "One of the best candidates of a grid.", str(folder / "grid")
    profile_file.write(replace(made, reason=reason, source=source), path)


def _compared(run: Run, reference: str, name: str, comparisons: int) -> Line:
    study = run.study
    ratios = run.block_ratios(study.arm(name), reference=study.arm(reference))
    fixed = run.design or design(len(ratios), comparisons)
    effect = at_end(replace(fixed, comparisons=comparisons), ratios, study.stopping.margin, stopped_early=False)
    assert effect is not None, "there are enough blocks, as was seen at the start"
    return {"ratio": effect.ratio, "low": effect.low, "high": effect.high, "blocks": effect.blocks}


def _verdict(effect: Line) -> str:
    """Whether a search's profile is within 3% of the optimum, by its whole interval."""
    return MET if effect["low"] >= CLOSE else MISSED if effect["high"] < CLOSE else OPEN


def _told(text: str) -> None:
    print(text, flush=True)


def _page(results: Results) -> list[str]:
    settings, grid, side = results.lines[0], results.of("grid")[0], results.of("side")[0]
    searches = results.of("search")
    titles = {f"grid-{place}": candidate["title"] for place, candidate in enumerate(grid["top"], 1)}
    shown = {**settings, "space": Path(settings["space"]).stem}
    optimum = side["optimum"]
    verdicts = Counter(_verdict(effect) for effect in side["searches"].values())
    counted = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in (MET, OPEN, MISSED))
    return [
        page.heading("The tuner against a whole grid", QUESTION, results.lines, settings["machine"]),
        HOW.format(**shown, blocks=settings["grid_blocks"], side=settings["side_blocks"], top=len(titles)),
        "## What came out",
        f"- the grid's optimum: {titles[optimum]}; its speed is {page.interval(side['grid'][optimum])} times the "
        f"baseline's\n- searches whose profile is within 3% of the optimum, by the whole interval: {counted}\n"
        f"- share of the grid's time that each search took, against the quarter: {_shares(searches, grid)}",
        _found(searches, grid, side["searches"], titles[optimum]),
        "## The best of the grid, measured again",
        f"{side['blocks_with_interference']} of the {side['of']} blocks of this run were disturbed from outside.",
        page.table(
            ("candidate", "times the baseline's speed"),
            [[titles[name], page.interval(effect)] for name, effect in side["grid"].items()],
            numbers_from=1,
        ),
        "## The grid, candidate by candidate",
        "As the grid's own trials have it; the first of so many was lucky too.",
        page.table(
            ("candidate", "speedup"), [[title, f"{speedup:.3f}"] for title, speedup in grid["ranking"]], numbers_from=1
        ),
    ]


def _found(searches: Sequence[Line], grid: Line, against: Mapping[str, Line], optimum: str) -> str:
    header = ("", "candidates", "time", "share of the grid's time", "speed, times the optimum's", "within 3%",
              "what it found")  # fmt: skip
    rows = [["the whole grid", str(grid["candidates"]), f"{grid['seconds']:.0f} s", "100%", "1", "", optimum]]
    for line in searches:
        effect = against[f"search-{line['seed']}"]
        effort = [str(line["candidates"]), f"{line['seconds']:.0f} s", f"{line['seconds'] / grid['seconds']:.0%}"]
        rows.append([f"search, seed {line['seed']}", *effort, page.interval(effect), _verdict(effect), line["found"]])
    return page.table(header, rows, numbers_from=1)


def _shares(searches: Sequence[Line], grid: Line) -> str:
    shares = [line["seconds"] / grid["seconds"] for line in searches]
    within = sum(share <= 1 / QUARTER for share in shares)
    return f"{', '.join(f'{share:.1%}' for share in shares)}: {within} of {len(shares)} within it"


QUESTION = """Is what `envkit tune` finds as good as the best candidate of a grid that is measured to the last one,
for a quarter of the grid's time?"""
HOW = """## How

The grid is the space `{space}`, each of its candidates tried in {blocks} rounds (`envkit tune --exhaustive`). Each
search is `envkit tune --space {space}` with a quarter of the grid's time as its budget, for the search and its
confirmation together (`--space-only`: the shipped profiles, of which some are not in the grid, don't compete). What
the search found is what it wrote, or the baseline where it could not confirm that it is faster. Then one run of {side}
blocks has the baseline, the best {top} of the grid and what each search wrote as its arms, in blocks of fresh processes
in random order. The best of these {top} there is the optimum that searches are held against: the first of so many
noisy trials need not be the best.
That it is chosen by the samples that it is then compared in makes it look a little faster than it is, which is to the
searches' disadvantage. The intervals are 95% intervals, and all comparisons that this choice leaves possible share the
error rate. A search has met the 3% where its whole interval is at 0.97 or above, missed it where all of it is below,
and else it is open. Timed steps of a sample: {steps}; data: {data}."""


if __name__ == "__main__":
    sys.exit(script.run("tune_against_grid", main))
