"""What the size of the environment alone is worth: the same training, with a variable of nothing but padding.

T. Mytkowicz, A. Diwan, M. Hauswirth, P. F. Sweeney: Producing wrong data without doing anything obviously wrong!
(ASPLOS 2009) found that it can be worth several percent, because it moves the stack. Address-space randomisation moves
it too.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from envkit.bench.job import PADDING
from envkit.bench.plan import MARGIN
from envkit.common.errors import InputError
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import Task
from envkit.rendering import text
from envkit.stats.interval import ERROR_RATE, log_ratios, speedup
from envkit.worker.fashion_mnist import SYNTHETIC

from benchmarks import interleaved, page, script
from benchmarks.interleaved import Bench
from benchmarks.results import Line, Results

BLOCKS, STEPS = 12, 60
LENGTHS = [0, 1024, 2048, 3072, 4096]
# What starts a worker without address-space randomisation; see setarch(8).
ASLR_OFF = ("setarch", "--addr-no-randomize")


@dataclass(frozen=True)
class Cell:
    """One sample: ``padding`` in bytes; ``aslr`` is whether addresses are random, as the kernel has it by default."""

    block: int
    aslr: bool
    padding: int


def lengths(text: str) -> list[int]:
    """``0,1024`` as [0, 1024]; the first is what the others are compared with."""
    parts = text.split(",")
    if len(set(parts)) < 3 or not all(part.isdigit() and int(part) < 100_000 for part in parts):
        raise argparse.ArgumentTypeError(f"'{text}' are not three or more different numbers of bytes below 100,000")
    return [int(part) for part in parts]


def cells(blocks: int, padding: Sequence[int], aslr: Sequence[bool], seed: int) -> Iterator[Cell]:
    """All samples to take; each block has every combination once, in random order."""
    for block in range(blocks):
        once = [Cell(block, random_addresses, size) for random_addresses in aslr for size in padding]
        random.Random(f"{seed}:{block}").shuffle(once)
        yield from once


def main() -> int:
    parser = script.parser("padding", __doc__)
    interleaved.add_options(parser, BLOCKS, STEPS)
    parser.add_argument("--lengths", metavar="BYTES,…", type=lengths, default=LENGTHS,
                        help=f"of the padding (default: {','.join(map(str, LENGTHS))})")  # fmt: skip
    parser.add_argument("--aslr-off", action="store_true", help="measure without address-space randomisation too")
    arguments = parser.parse_args()
    if arguments.aslr_off:
        _require_aslr_off()
    bench = Bench(arguments)
    settings = {
        "machine": page.machine(), "steps": arguments.steps, "warmup_steps": arguments.warmup_steps,
        "seed": arguments.seed, "data": "synthetic" if bench.data == SYNTHETIC else "Fashion-MNIST",
    }  # fmt: skip
    results = Results(arguments.results, settings)
    halves = [True, False] if arguments.aslr_off else [True]
    planned = list(cells(arguments.blocks, arguments.lengths, halves, arguments.seed))
    with machine_lock():
        for number, cell in enumerate(planned, start=1):
            if not results.of("sample", **asdict(cell)):
                results.append("sample", **asdict(cell), **_sample(bench, cell))
                line = results.lines[-1]
                step_ms = line["seconds"] / arguments.steps * 1000
                print(
                    f"{number}/{len(planned)}  {_named(cell.aslr)}, {cell.padding} bytes: {step_ms:.2f} ms/step",
                    flush=True,
                )
    page.write(arguments.page, _page(results, planned, arguments))
    return 0


def _require_aslr_off() -> None:
    """Raise InputError where address-space randomisation can't be turned off: containers may forbid it."""
    if shutil.which(ASLR_OFF[0]) is None:
        raise InputError("--aslr-off: setarch is not installed; get it with: apt-get install util-linux")
    look = [*ASLR_OFF, "cat", "/proc/self/maps"]
    seen = {subprocess.run(look, capture_output=True, text=True, check=False).stdout for _ in range(2)}
    if len(seen) > 1 or "" in seen:
        raise InputError("--aslr-off: address-space randomisation can't be turned off here; leave the option out")


def _sample(bench: Bench, cell: Cell) -> Line:
    length = ("--warmup-steps", str(bench.arguments.warmup_steps), "--steps", str(bench.arguments.steps))
    task = Task(
        arguments=("train", "--workload", "cnn", "--data", bench.data, *length),
        variables={PADDING: "x" * cell.padding},
        inherited=bench.inherited,
        prefix=() if cell.aslr else ASLR_OFF,
        data=None if bench.data == SYNTHETIC else bench.data,
    )
    outcome = bench.engine.run(task)
    if outcome.failure is not None:
        said = (outcome.stderr_tail.strip().splitlines() or ["nothing"])[-1]
        raise InputError(f"the worker {text(outcome.failure)}: {said}; fix that, and the same command goes on")
    document: dict[str, Any] = json.loads(outcome.stdout)
    return {"seconds": document["seconds"], "usage": document["usage"]}


def _named(aslr: bool) -> str:
    return "addresses random" if aslr else "addresses fixed"


def _page(results: Results, planned: Sequence[Cell], arguments: argparse.Namespace) -> list[str]:
    lines = [line for cell in planned for line in results.of("sample", **asdict(cell))]
    settings = results.lines[0]
    parts = [
        page.heading("What the size of the environment is worth", QUESTION, lines, settings["machine"]),
        HOW.format(
            blocks=arguments.blocks, steps=arguments.steps, warmup=arguments.warmup_steps, data=settings["data"],
            name=PADDING, first=arguments.lengths[0], pairs=len(arguments.lengths) - 1,
        ),
    ]  # fmt: skip
    for aslr in dict.fromkeys(cell.aslr for cell in planned):
        times = {
            size: [line["seconds"] for line in lines if line["aslr"] == aslr and line["padding"] == size]
            for size in arguments.lengths
        }
        parts += [f"## With {_named(aslr)}", *analysis(times, arguments.steps)]
    return [*parts, f"Every sample is a line of `{results.path.name}`, which the command writes."]


QUESTION = """A profile sets variables, and so changes the size of the environment that a process starts with. That
moves its stack, which alone can make it faster or slower (Mytkowicz, Diwan, Hauswirth, Sweeney: Producing wrong data
without doing anything obviously wrong!, ASPLOS 2009). How much is that worth when the CNN is trained here?"""
HOW = """## How

The baseline alone, in fresh processes, with a variable `{name}` of different lengths. {blocks} blocks have
each length once, in random order; a sample is {steps} steps of the CNN after {warmup} to warm up; data: {data}.
The ratio is the time with {first} bytes over the time with others, above 1 faster, estimated and bounded as in
`envkit bench`; the {pairs} intervals hold together at 95% (Bonferroni). Friedman's test asks whether any length differs
from the others; it compares ranks within blocks."""


def analysis(times: Mapping[int, Sequence[float]], steps: int) -> list[str]:
    """The table and what the tests say; ``times`` are in seconds, by length and in the order of the blocks."""
    from scipy import stats

    reference, *others = times
    rate = ERROR_RATE / len(others)
    rows = []
    for size, seconds in times.items():
        found = speedup(log_ratios(times[reference], seconds), rate, MARGIN) if size != reference else None
        ratio = f"{found.ratio:.3f}" if found else "1" if size == reference else "too few blocks"
        interval = f"{found.low:.3f} to {found.high:.3f}" if found else ""
        rows.append([f"{size:,}", f"{statistics.median(seconds) / steps * 1000:.2f}", ratio, interval])
    header = ("padding, bytes", "median ms/step", f"ratio to {reference:,} bytes", "interval")
    medians = [statistics.median(seconds) for seconds in times.values()]
    spread = f"The medians of the slowest and the fastest length are {max(medians) / min(medians) - 1:.1%} apart"
    if len(times[reference]) < 2:
        return [page.table(header, rows, numbers_from=0), f"{spread}."]
    p = float(stats.friedmanchisquare(*times.values()).pvalue)
    said = "some length differs from the others" if p < ERROR_RATE else "no difference between the lengths is found"
    return [page.table(header, rows, numbers_from=0), f"{spread}. Friedman's test: p = {p:.3f}, {said}."]


if __name__ == "__main__":
    sys.exit(script.run("padding", main))
