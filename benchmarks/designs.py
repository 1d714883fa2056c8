"""How should two profiles be measured? Candidates side by side: the half-width that each reaches in the same time.

All measure the baseline against itself on the real CNN, in turns, in random order: what differs is noise.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from envkit.bench import dataset
from envkit.bench.plan import MARGIN
from envkit.cli.arguments import count
from envkit.common.errors import InputError
from envkit.common.machine_lock import machine_lock
from envkit.engines import turns
from envkit.engines.base import PROJECT, EngineOptions, Task
from envkit.engines.local import LocalEngine
from envkit.profiles.environment import clean
from envkit.stats.interval import ERROR_RATE, MIN_BLOCKS, speedup

from benchmarks import neighbour, page, script
from benchmarks.results import Line, Results

ROUNDS = 12
LONG, SHORT, WARM_UP, SLICE, AGAIN = 200, 12, 5, 8, 8
MINUTES = 4
AIM = 0.015  # half-width
DRAWN = 400
NEIGHBOUR_S = 3600.0
Process = dict[str, Any]  # step_s, faults (of a step)


class Bench:
    """Starts workers of the baseline, whose environment has a random size."""

    def __init__(self, data: str, chance: random.Random) -> None:
        self.engine = LocalEngine(EngineOptions())
        self.data = data
        self.inherited = clean(os.environ, keep=())[0]
        self.chance = chance

    def variables(self) -> dict[str, str]:
        return {"ENVKIT_PADDING": "x" * self.chance.randrange(4097)}

    def task(self, warm_up: int, steps: int) -> Task:
        length = ("--warmup-steps", str(warm_up), "--steps", str(steps))
        return Task(("train", "--workload", "cnn", "--data", self.data, *length), self.variables(), self.inherited)

    @contextlib.contextmanager
    def own(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        """``benchmarks.design_worker``."""
        argv = [sys.executable, "-m", "benchmarks.design_worker", *map(str, arguments)]
        environment = {**self.inherited, **self.variables()}
        process = subprocess.Popen(argv, cwd=PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def long(self) -> list[Process]:
        """As the kit did until now: with PyTorch's compiler imported, and to Python's own end."""
        imports = "import atexit, runpy, sys, torch._dynamo, os; sys.argv[0] = 'envkit.worker'; "
        code = imports + "runpy.run_module('envkit.worker', run_name='__main__')"
        found = []
        for _ in range(2):
            task = self.task(20, LONG)
            argv = [sys.executable, "-c", code, *task.arguments]
            ended = subprocess.run(argv, cwd=PROJECT, env={**task.inherited, **task.variables}, check=True,
                                   capture_output=True, text=True)  # fmt: skip
            found.append(_process(ended.stdout))
        return found

    def short(self) -> list[Process]:
        return [_process(self.engine.run(self.task(WARM_UP, SHORT)).stdout) for _ in range(2)]

    def together(self) -> list[Process]:
        starts = [(self.engine, self.task(WARM_UP, SHORT)) for _ in range(2)]
        with turns.together(starts) as waiting:
            return [_process(one.train().stdout) for one in waiting]

    def slices(self) -> list[Process]:
        """Both alive, slices of SLICE steps in random turns, the other one stopped."""
        with contextlib.ExitStack() as stack:
            both = [stack.enter_context(self.own("slices", self.data, LONG // 2, SLICE)) for _ in range(2)]
            for one in both:
                _read(one)
                os.kill(one.pid, signal.SIGSTOP)
            found: dict[int, Process] = {}
            while len(found) < len(both):
                for one in self.chance.sample(both, len(both)):
                    os.kill(one.pid, signal.SIGCONT)
                    _next(one)
                    line = _read(one)
                    if "step_s" in line:
                        found[one.pid] = line
                    else:
                        os.kill(one.pid, signal.SIGSTOP)
            return [found[one.pid] for one in both]

    def forked(self) -> list[Process]:
        """Two children of each of two parents: A1, A2, B1, B2."""
        found = []
        for _ in range(2):
            with self.own("forked", self.data, SHORT) as parent:
                _read(parent)
                for _ in range(2):
                    _next(parent)
                    found.append(_read(parent))
        return found

    def again(self) -> list[Process]:
        """One process that trains again and again from the beginning."""
        with self.own("again", self.data, SHORT, AGAIN) as one:
            return [_read(one) for _ in range(AGAIN)]


def _read(process: subprocess.Popen[str]) -> Process:
    assert process.stdout is not None
    line: Process = json.loads(process.stdout.readline() or "null") or {}
    if not line:
        raise InputError("benchmarks.design_worker ended too early; try it by hand")
    return line


def _next(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _process(printed: str) -> Process:
    document = json.loads(printed)
    return {"step_s": document["step_s"], "faults": document["usage"]["minor_faults"] / len(document["step_s"])}


# What is tried, what was expected of it before it was measured, and how many pairs it makes in a round.
DESIGNS: dict[str, tuple[Callable[[Bench], list[Process]], str, int]] = {
    "long": (Bench.long, "what the kit did until now", 1),
    "short": (Bench.short, "as much noise between processes, and three times as many of them", 2),
    "together": (Bench.together, "the same, for less time; what the kit does now", 3),
    "slices": (Bench.slices, "drift cancels: sharper than short, if drift is what makes the noise", 1),
    "forked": (Bench.forked, "cheapest; but children may share their parent's layout", 1),
    "again": (Bench.again, "cheapest of all; but a used heap is not a fresh one", 1),
}


def main() -> int:
    parser = script.parser("designs", __doc__)
    parser.add_argument("--rounds", metavar="N", type=count, default=ROUNDS, help=f"(default: {ROUNDS})")
    parser.add_argument("--beside", metavar="N", type=count, default=ROUNDS // 2,
                        help=f"more rounds, beside a neighbour (default: {ROUNDS // 2})")  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order (default: 1)")
    parser.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    arguments = parser.parse_args()
    data = dataset.find(arguments.data, print)
    results = Results(arguments.results, {"machine": page.machine(), "seed": arguments.seed})
    chance = random.Random(f"{arguments.seed}:{time.time()}")
    bench = Bench(data.location, chance)
    with machine_lock():
        _measure(bench, results, "alone", arguments.rounds)
        with neighbour.running(str(arguments.seed), NEIGHBOUR_S):
            _measure(bench, results, "neighbour", arguments.beside)
    page.write(arguments.page, _page(results))
    return 0


def _measure(bench: Bench, results: Results, where: str, rounds: int) -> None:
    for number in range(rounds):
        todo = [name for name, (_, _, times) in DESIGNS.items() for _ in range(times)]
        if where == "neighbour":
            todo = [name for name in todo if name in ("long", "short", "together", "slices")]
        if results.of("round", where=where, number=number):
            continue
        for name in bench.chance.sample(todo, len(todo)):
            begin = time.monotonic()
            found = DESIGNS[name][0](bench)
            results.append("measured", where=where, design=name, seconds=time.monotonic() - begin, processes=found)
        results.append("round", where=where, number=number)
        print(f"{where}: round {number + 1} of {rounds}", flush=True)


def _mean(process: Process) -> float:
    return statistics.fmean(process["step_s"])


def _ratios(lines: Sequence[Line]) -> list[float]:
    """The log ratio of each pair."""
    pairs = [line["processes"] for line in lines]
    return [math.log(_mean(one) / _mean(other)) for one, other in pairs]


def _spread(values: Sequence[float]) -> float:
    """The standard deviation about 0, which is the truth."""
    return math.sqrt(statistics.fmean(value**2 for value in values))


def _half_width(ratios: Sequence[float], pairs: int) -> float | None:
    """The median half-width of runs of so many pairs, drawn from ``ratios``; None for too few for an interval."""
    chance = random.Random(1)
    drawn = [speedup(chance.choices(ratios, k=pairs), ERROR_RATE, MARGIN) for _ in range(DRAWN)]
    known = [one.half_width for one in drawn if one is not None]
    return statistics.median(known) if known else None


def _time_saved(results: Results, where: str) -> str:
    """In how much of the time the kit's design reaches what the one before it does."""
    ratios, fit, seconds = {}, {}, {}
    for name in ("long", "together"):
        lines = results.of("measured", where=where, design=name)
        ratios[name], seconds[name] = _ratios(lines), statistics.fmean(line["seconds"] for line in lines)
        fit[name] = int(MINUTES * 60 / seconds[name])
    before = _half_width(ratios["long"], fit["long"])
    if before is None:
        return f"In {MINUTES} minutes *long* has too few pairs for an interval."
    widths = ((pairs, _half_width(ratios["together"], pairs)) for pairs in range(MIN_BLOCKS, fit["together"] + 1))
    enough = next((pairs for pairs, width in widths if width is not None and width <= before), None)
    if enough is None:
        return f"In {MINUTES} minutes *together* does not reach *long*'s ±{before:.1%}."
    takes = enough * seconds["together"]
    return (
        f"What *long* reaches in {MINUTES} minutes (±{before:.1%}), *together* reaches with {enough} pairs, in "
        f"{takes:.0f} s: {takes / (fit['long'] * seconds['long']):.0%} of the time."
    )


def _slow(lines: Sequence[Line]) -> str:
    """The share of steps that took over twice what is typical of their process."""
    steps = [
        step > 2 * statistics.median(one["step_s"])
        for line in lines
        for one in line["processes"]
        for step in one["step_s"]
    ]
    return f"{statistics.fmean(steps):.2%}"


def _table(results: Results, where: str) -> str:
    rows = []
    for name, (_, expected, _) in DESIGNS.items():
        lines = results.of("measured", where=where, design=name)
        if not lines or name in ("forked", "again"):
            continue
        deviation, seconds = _spread(_ratios(lines)), statistics.fmean(line["seconds"] for line in lines)
        fit = MINUTES * 60 / seconds
        width = _half_width(_ratios(lines), int(fit))
        rows.append([name, expected, str(len(lines)), f"{seconds:.1f}", f"{deviation:.1%}", str(int(fit)),
                     "-" if width is None else f"±{width:.1%}", f"{deviation**2 * seconds:.3f}",
                     _slow(lines)])  # fmt: skip
    header = ("design", "what was expected", "pairs", "s per pair", "sd of a pair", f"pairs in {MINUTES} min",
              "half-width", "variance times s", "steps slow for once")  # fmt: skip
    return page.table(header, rows, 2)


def _components(results: Results) -> str:
    """What a process got when it started, against what its steps had."""
    lines = [line for line in results.of("measured", where="alone") if line["design"] in ("long", "short", "together")]
    processes = [process for line in lines for process in line["processes"]]
    logs = [math.log(_mean(one)) for one in processes]
    faults = [one["faults"] for one in processes]
    correlation = statistics.correlation(faults, logs)
    slope = correlation * statistics.stdev(logs) / statistics.stdev(faults)
    rows = []
    long = results.of("measured", where="alone", design="long") + results.of("measured", where="alone", design="slices")
    for steps in (5, 12, 25, 50, 100):
        cut = [[math.log(statistics.fmean(one["step_s"][:steps])) for one in line["processes"]] for line in long]
        rows.append([str(steps), f"{_spread([one - other for one, other in cut]):.1%}"])
    return (
        f"Of {len(processes)} processes (designs long, short and together) the mean step varied by "
        f"{statistics.stdev(logs):.1%}, and the page faults of a step from {min(faults):,.0f} to {max(faults):,.0f}. "
        f"The two correlate by {correlation:.2f}: {slope * 1000:.1%} more time for 1,000 more faults.\n\nMore steps of "
        "the same two processes (long and slices) bring them hardly closer together:\n\n"
        + page.table(("timed steps", "sd of a pair"), rows, 0)
    )


def _floor(results: Results) -> str:
    """The half-width that remains of the kit's own design where nothing varies but what page faults explain."""
    lines = results.of("measured", where="alone", design="together")
    processes = [process for line in lines for process in line["processes"]]
    logs = [math.log(_mean(one)) for one in processes]
    draw = abs(statistics.correlation([one["faults"] for one in processes], logs)) * statistics.stdev(logs)
    pair, seconds = draw * math.sqrt(2), statistics.fmean(line["seconds"] for line in lines)
    start = seconds - 2 * (WARM_UP + SHORT) * statistics.fmean(map(_mean, processes))
    width, least = (2 * pair * math.sqrt(each / (MINUTES * 60)) for each in (seconds, start))
    needed = (AIM / (2 * pair)) ** 2 * MINUTES * 60
    return (
        f"Were nothing on this machine to vary but what page faults explain, a process would still differ from another "
        f"by {draw:.1%}, and a pair by {pair:.1%}. The kit's own design ({seconds:.1f} s a pair) would then reach "
        f"±{width:.1%} in {MINUTES} minutes. Training takes only a part of that: with steps that take no time at all, "
        f"{start:.1f} s would be left to start both workers, and ±{least:.1%}. For ±{AIM:.1%} a pair would have to "
        f"take {needed:.1f} s."
    )


def _same_layout(results: Results) -> str:
    children = [line["processes"] for line in results.of("measured", where="alone", design="forked")]
    siblings = [(four[at], four[at + 1]) for four in children for at in (0, 2)]
    equal = sum(abs(one["faults"] - other["faults"]) < 0.01 * one["faults"] for one, other in siblings)
    fresh = [
        pair["processes"] for pair in results.of("measured", where="alone") if pair["design"] in ("short", "together")
    ]
    equal_fresh = sum(abs(one["faults"] - other["faults"]) < 0.01 * one["faults"] for one, other in fresh)
    runs = [line["processes"] for line in results.of("measured", where="alone", design="again")]
    first = statistics.fmean(one[0]["faults"] for one in runs)
    later = statistics.fmean(process["faults"] for one in runs for process in one[1:])
    return (
        f"- **forked**: {equal} of {len(siblings)} pairs of siblings had as many faults in a step to within 1%; of "
        f"fresh pairs {equal_fresh} of {len(fresh)}. But all share the addresses "
        "of their parent's libraries and heap, and a library that was preloaded may have begun its work before: that "
        "they are as good as fresh processes was not shown, so they are not used.\n"
        f"- **again**: {first:,.0f} faults in a step of a process' first training, {later:,.0f} in those after it. "
        "A used heap answers another question than a fresh one: not used."
    )  # fmt: skip


def _page(results: Results) -> list[str]:
    lines = results.of("measured")
    return [
        page.heading("How two profiles are measured", (__doc__ or "").strip(), lines, results.lines[0]["machine"]),
        HOW,
        "## Alone on the machine",
        _table(results, "alone"),
        _time_saved(results, "alone"),
        "## Beside a neighbour that spins on all CPUs, 2 s of 6",
        _table(results, "neighbour"),
        _time_saved(results, "neighbour"),
        "## The floor: what a process gets when it starts",
        _components(results),
        WHY,
        _floor(results),
        "## What was not taken",
        _same_layout(results),
        NOT_TAKEN,
    ]  # fmt: skip


HOW = f"""\
A pair is the baseline twice. *Long*: 20 steps to warm up and {LONG} timed, one process after the other. *Short*:
{WARM_UP} and {SHORT}. *Together*: the same, but both import torch at the same time, and then train one after the
other. *Slices*: both alive, {LONG // 2} steps in slices of {SLICE}, the other one stopped by SIGSTOP; they start
together. *Forked*: children of a process that has imported torch. *Again*: {AGAIN} trainings in one process.

The half-width is the median of {DRAWN} runs by the kit's own interval, each of as many pairs as fit into {MINUTES}
minutes, drawn with replacement from those measured ("-": too few for an interval). The sd of a pair is about 0, the
truth; its square times a pair's seconds is what a design needs, unless there are outliers, as beside a neighbour:
then the interval says more, and with so few pairs not much. A step is slow for once where it takes over twice what
is typical of its process."""
WHY = """\
glibc's malloc gives memory back to the kernel when enough of it is free at the end of its heap, and every page that
it gets again is a fault. Whether that end is free in each step depends on where small blocks came to lie, which
depends on addresses, on hash seeds, and on the size of the environment: a process draws it once, and keeps it. So
time is best spent on more processes: a sample is as short as the start of its worker makes worthwhile
(`runner/envkit/bench/pace.py`), and that start is as cheap as it can be made honestly.

The floor follows: with a standard deviation of s for a pair and c seconds for it, T seconds give a half-width of
about 2 s sqrt(c / T). Only a profile that takes the draw away (an allocator that keeps its memory) is measured more
sharply."""
NOT_TAKEN = """\
- **slices**: they cancel what changes from second to second, and help beside a neighbour that comes and goes. But a
  process that goes on after it was stopped may have its threads on one CPU for a while, unless they are bound, and
  that would be held against profiles that bind nothing. Not used.
- **Page faults as a covariate**: they explain a good part of the noise, and are what a profile changes: to adjust
  for them takes its effect away. Not used."""


if __name__ == "__main__":
    sys.exit(script.run("designs", main))
