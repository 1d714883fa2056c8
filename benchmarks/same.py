"""The baseline against itself, again and again: whoever finds a difference there is wrong; this counts how often.

Each run is one ``envkit plan`` on the real workload, with fresh processes, and stops by the same rules as any run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis.result import conclude
from envkit.bench import record
from envkit.bench.run import read
from envkit.cli.arguments import count, duration
from envkit.stats.verdict import Verdict

from benchmarks import page, script
from benchmarks.results import Line, Results

RUNS, BUDGET_S = 20, 240.0


def main() -> int:
    parser = script.parser("same", __doc__)
    parser.add_argument("--runs", metavar="N", type=count, default=RUNS, help=f"(default: {RUNS})")
    parser.add_argument("--budget", metavar="TIME", type=duration, default=BUDGET_S,
                        help=f"of each run (default: {BUDGET_S:g}s)")  # fmt: skip
    parser.add_argument("--steps", metavar="N", type=count, help="timed steps per sample (default: by the pace)")
    parser.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    parser.add_argument("--python", metavar="PATH", help="the workers' interpreter (default: this one)")
    arguments = parser.parse_args()
    settings = {"machine": page.machine(), "budget_s": arguments.budget, "steps": arguments.steps}
    results = Results(arguments.results, settings)
    for run in range(arguments.runs):
        if not results.of("run", run=run):
            begin = time.monotonic()
            calibration = _calibrate(_folder(arguments.results, run), arguments)
            results.append("run", run=run, duration_s=round(time.monotonic() - begin, 1), **calibration)
            print(f"{run + 1}/{arguments.runs}  {_told(results.lines[-1])}", flush=True)
    page.write(arguments.page, _page(results.of("run")[: arguments.runs], results))
    return 0


def _folder(results: Path, run: int) -> Path:
    return results.with_suffix("") / f"{run:02}"


def _calibrate(folder: Path, arguments: argparse.Namespace) -> Line:
    """One run, or the rest of one that was interrupted; its record is in ``folder``."""
    if record.is_begun(folder):
        options = ["--resume", str(folder)]
    else:
        options = ["--budget", f"{arguments.budget:g}s", "--output", str(folder)]
        options += script.option_words(arguments, "steps", "python", "data")
    document = script.runner("plan", *options, purpose=str(folder))
    comparison = document["comparisons"][0]
    interval = comparison["speedup"] or dict.fromkeys(("ratio", "low", "high", "blocks"))
    return {
        "verdict": comparison["verdict"],
        **{name: interval[name] for name in ("ratio", "low", "high", "blocks")},
        "blocks_with_interference": len(document.get("interference") or {}),
        "ended": document["ended"],
    }


def _told(line: Line) -> str:
    interval = "no interval" if line["ratio"] is None else page.interval(line)
    return f"{line['verdict']}: {interval}, {line['duration_s']:.0f} s"


def _half_width(line: Line) -> float:
    return float((line["high"] - line["low"]) / 2 / line["ratio"])


def _page(runs: Sequence[Line], results: Results) -> list[str]:
    settings = results.lines[0]
    header = ("run", "verdict", "speedup", "95% interval", "half-width", "blocks", "with interference")
    rows = []
    for line in runs:
        figures = ["-"] * 4
        if line["ratio"] is not None:
            interval = f"{line['low']:.3f} to {line['high']:.3f}"
            figures = [f"{line['ratio']:.3f}", interval, f"±{_half_width(line):.1%}", str(line["blocks"])]
        rows.append([str(line["run"] + 1), line["verdict"], *figures, str(line["blocks_with_interference"])])
    return [
        page.heading("The baseline against itself", QUESTION, runs, settings["machine"]),
        HOW.format(budget=settings["budget_s"], steps=f" --steps {steps}" if (steps := settings["steps"]) else ""),
        "## What came out",
        "\n".join(f"- {name}: {value}" for name, value in _counts(runs)),
        _floor([_folder(results.path, line["run"]) for line in runs], settings["budget_s"]),
        page.table(header, rows, numbers_from=2),
    ]


QUESTION = """Both sides of the comparison are the same: the baseline. A verdict "faster" or "slower" is then wrong, and
should come at most 5% of the time. How often does it, on the real workload, on this machine?"""
HOW = """## How

Each run is `envkit plan --budget {budget:g}s{steps}`: the CNN in fresh processes, in blocks of two in
random order, with the same looks and the same interval as every `envkit bench`."""


def _floor(folders: Sequence[Path], budget_s: float) -> str:
    """How wide an interval is by the noise and the cost of the blocks of these records, if nothing else takes time."""
    results = [conclude(read(folder)) for folder in folders if record.is_begun(folder)]
    deviations = [result.comparisons[0].deviation for result in results if result.comparisons[0].deviation]
    if not deviations:
        return ""
    deviation, block_s = (
        statistics.median(deviations),
        statistics.median(result.seconds_per_block for result in results),
    )
    fit = budget_s / block_s
    steps = statistics.median(result.measured[0].step_s for result in results)
    return FLOOR.format(
        steps=1000 * steps, deviation=deviation, block=block_s, budget=budget_s, fit=fit,
        floor=1.96 * deviation / math.sqrt(fit),
    )  # fmt: skip


FLOOR = """The host: a step of the baseline took {steps:.0f} ms (median of the runs).

The floor: a block's log ratio has a standard deviation of {deviation:.1%} and a block takes {block:.1f} s (medians), so
{budget:g} s have room for {fit:.0f} if nothing else takes time. The interval of their mean (1.96 standard errors, for
normal noise) is then ±{floor:.1%}. [statistics.md](../statistics.md#design-decisions) says where that deviation comes
from, and why longer samples don't help."""


def _counts(runs: Sequence[Line]) -> list[tuple[str, str]]:
    known_runs = [line for line in runs if line["ratio"] is not None]
    mistakes = sum(line["verdict"] in (Verdict.FASTER, Verdict.SLOWER) for line in runs)
    counts = [("wrong verdicts (95% interval by Clopper and Pearson 1934)", page.share(mistakes, len(runs)))]
    if known_runs:
        covered = sum(line["low"] <= 1 <= line["high"] for line in known_runs)
        excluded = sum(line["verdict"].startswith("no difference larger") for line in known_runs)
        widths = [_half_width(line) for line in known_runs]
        counts += [
            ("intervals that hold 1", page.share(covered, len(known_runs))),
            ("a difference larger than the margin excluded", f"{excluded} of {len(runs)}"),
            ("median half-width of the interval", f"±{statistics.median(widths):.1%}"),
        ]
    if len(known_runs) < len(runs):
        counts.append(("runs too short for an interval", f"{len(runs) - len(known_runs)} of {len(runs)}"))
    return counts


if __name__ == "__main__":
    sys.exit(script.run("same", main))
