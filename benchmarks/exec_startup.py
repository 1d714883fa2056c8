"""What ``envkit exec`` adds to the start of a command: the same command bare and under it, in turn."""

from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.cli.arguments import count
from envkit.common.machine_lock import machine_lock
from envkit.profiles.environment import clean

from benchmarks import page, script
from benchmarks.errors import ScriptError
from benchmarks.results import Line, Results

STARTS, WARM_UP = 50, 3
LIMIT_MS = 400.0
RUNNER = Path(sys.executable).with_name("envkit")
BARE = "bare"
# A profile that sets nothing, and one that preloads libraries.
WAYS: dict[str, tuple[str, ...]] = {
    BARE: (),
    "exec baseline": (str(RUNNER), "exec", "baseline", "--"),
    "exec --no-check baseline": (str(RUNNER), "exec", "--no-check", "baseline", "--"),
    "exec jemalloc-retain-mkl": (str(RUNNER), "exec", "jemalloc-retain-mkl", "--"),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "/bin/true": ("/bin/true",),
    "python -c pass": (sys.executable, "-c", "pass"),
    "python -c 'import torch'": (sys.executable, "-c", "import torch"),
}


def main() -> int:
    parser = script.parser("exec_startup", __doc__, page.PAGES / "startup.md")
    parser.add_argument("--starts", metavar="N", type=count, default=STARTS, help=f"of each (default: {STARTS})")
    arguments = parser.parse_args()
    if not RUNNER.exists():
        raise ScriptError(f"{RUNNER}: is not there; make it with: make setup")
    results = Results(arguments.results, {"machine": page.machine()})
    variables, _ = clean(os.environ, keep=())
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as it is for everybody
    with machine_lock():
        for _ in range(WARM_UP):
            for argv in COMMANDS.values():
                for way in WAYS:
                    _ms(way, argv, variables)
        for number in range(arguments.starts):
            cells = [(command, way) for command in COMMANDS for way in WAYS]
            random.Random(number).shuffle(cells)
            for command, way in cells:
                if not results.of("start", round=number, command=command, way=way):
                    took = _ms(way, COMMANDS[command], variables)
                    results.append("start", round=number, command=command, way=way, ms=round(took, 3))
            print(f"{number + 1}/{arguments.starts}", flush=True)
    lines = [line for line in results.of("start") if line["round"] < arguments.starts]
    page.write(arguments.page, _page(lines, results.lines[0], arguments.starts))
    return 0


def _ms(way: str, command: Sequence[str], variables: Mapping[str, str]) -> float:
    """How long one start takes, from before it to after its end, in milliseconds."""
    argv = [*WAYS[way], *command]
    begin = time.perf_counter()
    ended = subprocess.run(argv, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    took = time.perf_counter() - begin
    if ended.returncode != 0:
        last_line = (ended.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        raise ScriptError(f"{' '.join(argv)}: ended with status {ended.returncode}: {last_line}")
    return took * 1000


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of the median from the order statistics, which takes nothing for granted of the distribution.

    None where there are too few values. Source: M. Hollander, D. A. Wolfe, E. Chicken: Nonparametric Statistical
    Methods, 3rd edition (2014), section 3.6 (the interval that belongs to the sign test).
    """
    from scipy import stats

    interval = stats.quantile_test(list(values), p=0.5).confidence_interval(0.95)
    return None if math.isnan(interval.low) else (interval.low, interval.high)


def _page(lines: Sequence[Line], settings: Line, starts: int) -> list[str]:
    rows = []
    for command in COMMANDS:
        times = {way: _of(lines, command, way) for way in WAYS}
        for way, ms in times.items():
            row = [f"`{command}`", way, f"{statistics.median(ms):.1f}"]
            if way == BARE:
                rows.append([*row, "", "", ""])
                continue
            added = [milliseconds - bare for milliseconds, bare in zip(ms, times[BARE], strict=True)]
            interval = median_interval(added)
            shown = f"{interval[0]:.1f} to {interval[1]:.1f}" if interval else "too few starts"
            within = "" if interval is None else "yes" if interval[1] < LIMIT_MS else "no"
            rows.append([*row, f"{statistics.median(added):.1f}", shown, within])
    header = ("command", "started", "median, ms", "added, ms", "95% interval", f"below {LIMIT_MS:g} ms")
    return [
        page.heading("How much time `envkit exec` adds to a command", QUESTION, lines, settings["machine"]),
        HOW.format(starts=starts, warm_up=WARM_UP),
        page.table(header, rows, numbers_from=2),
        WHY,
    ]


def _of(lines: Sequence[Line], command: str, way: str) -> list[float]:
    """The milliseconds of each round."""
    chosen = [line for line in lines if line["command"] == command and line["way"] == way]
    return [line["ms"] for line in sorted(chosen, key=lambda line: line["round"])]


QUESTION = """A command under a profile ends later than it would alone. envkit starts, resolves the profile, puts its
evidence hook into the command's environment, and reads the evidence at the end. How much later does the command end?"""
HOW = """Each of {starts} rounds starts every command once, in random order, after {warm_up} warm-up rounds. A time runs
from before a process starts until after it has ended. Differences are taken within rounds. The interval of their median
comes from order statistics."""
WHY = """envkit starts a Python of its own, reads and checks the profile, and starts the command's Python once to find
libraries. It caches nothing between starts. A process that imported torch writes its evidence when it ends, unless
`--no-check` is given. In the last rows, this delays the end and not the start."""


if __name__ == "__main__":
    sys.exit(script.run("exec_startup", main))
