"""Known effects in the real CNN, in pieces: how often is the verdict right, and how soon?

Each call measures some more blocks with ``envkit bench``: the baseline beside copies whose steps are longer by a known
share (``benchmarks/planted_hook``). It adds their times to one file that only grows.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from envkit.bench.run import read as read_run
from envkit.bench.study import MARGIN
from envkit.cli.arguments import counts
from envkit.common import codec
from envkit.profiles.environment import Environment
from envkit.stats.interval import ERROR_RATE, Speedup, log_ratios, speedup
from envkit.stats.verdict import Verdict

from benchmarks import growing, page, planted_hook, script
from benchmarks.errors import ScriptError
from benchmarks.planted_hook.sitecustomize import VARIABLE
from benchmarks.recorded import session_of
from benchmarks.results import append_line
from benchmarks.same_page import upper_bound
from benchmarks.short_runs import Session, cut, judge

TIME_S = 600.0
# Planted shares of a step, in percent.
PERCENTAGES = (5, 10, 20, 50)
# Ten minutes have room for 40.
LENGTHS = (8, 20, 40)
HOOK = Path(planted_hook.__file__).parent
COPY = """name: {name}
title: Steps that are {percent}% longer
why:
  reason: The worker waits after each step, for that share of the step's own time.
  source: https://docs.python.org/3/library/site.html#module-sitecustomize
env:
  {variable}: "{share}"
"""


@dataclass(frozen=True)
class Planted:
    """One run, whose first arm is the baseline, and the second a copy of it with nothing planted."""

    session: Session
    shares: list[float]  # that each arm's steps are longer by
    sample_s: float  # seconds of a sample with all that its worker does, on average

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, object]) -> Planted:
        """Parse a line. Raise KeyError or ValueError if it is invalid."""
        run = codec.parse(document, Planted)
        Session.from_json(asdict(run.session))
        if len(run.shares) != run.session.arms or run.shares[:2] != [0.0, 0.0] or min(run.shares) < 0:
            raise ValueError("its arms and their planted shares do not fit")
        return run


@dataclass(frozen=True)
class Effect:
    """A planted effect: steps of one side are longer by ``share``, of the reference's or of the arm's."""

    share: float
    in_reference: bool

    @property
    def ratio(self) -> float:
        """The true speedup."""
        return 1 + self.share if self.in_reference else 1 / (1 + self.share)

    @property
    def right(self) -> frozenset[Verdict]:
        """The verdicts that agree with the truth."""
        if self.share == 0:
            return frozenset({Verdict.EQUIVALENT, Verdict.NOT_FOUND})
        return frozenset({Verdict.FASTER if self.in_reference else Verdict.SLOWER})

    def is_wrong(self, verdict: Verdict) -> bool:
        """Return whether a verdict contradicts the truth. That no difference was found contradicts nothing."""
        within_margin = 1 / (1 + MARGIN) < self.ratio < 1 + MARGIN
        allowed = {*self.right, Verdict.NOT_FOUND, *([Verdict.EQUIVALENT] if within_margin else [])}
        return verdict not in allowed

    def pairs(self, run: Planted) -> list[list[float]]:
        """Return the seconds of reference and arm in each block; none if the run does not have the effect.

        An arm that is slower stands beside the baseline. A reference that is slower stands beside the copy.
        """
        if self.share not in run.shares[1:]:
            return []
        planted = run.shares.index(self.share, 1)
        reference, arm = (planted, 1) if self.in_reference else (0, planted)
        return [[block[reference], block[arm]] for block in run.session.blocks]


@dataclass(frozen=True)
class Ends:
    """How short runs of one length ended."""

    runs: int
    right: int
    wrong: int
    covered: int  # runs whose interval holds the truth
    blocks: tuple[int, ...]  # after which each ended
    seconds: tuple[float, ...]  # that a run of these two arms would have taken

    def __add__(self, other: Ends) -> Ends:
        counted = (self.runs + other.runs, self.right + other.right, self.wrong + other.wrong)
        return Ends(*counted, self.covered + other.covered, self.blocks + other.blocks, self.seconds + other.seconds)


NO_RUNS = Ends(0, 0, 0, 0, (), ())


def main() -> int:
    parser = growing.bench_parser("planted", __doc__, TIME_S)
    parser.add_argument("--percent", metavar="N,…", type=counts(1), default=PERCENTAGES,
                        help="the planted shares of a step, in percent (default: 5,10,20,50)")  # fmt: skip
    arguments = growing.parse(parser)
    add = partial(_add, results=arguments.results)
    return growing.run(arguments, "run", lambda: _measure(arguments, add), add, lambda: parts(read(arguments.results)))


def _measure(arguments: argparse.Namespace, add: Callable[[Path, str], None]) -> None:
    """Measure one run."""
    copies = list(_copies(arguments.records / "profiles", (0, *arguments.percent)))
    path = os.pathsep.join(filter(None, (str(HOOK), os.environ.get("PYTHONPATH"))))
    growing.bench(arguments, "run", [*copies, "--allow-unknown"], arguments.time, add, {"PYTHONPATH": path})


def _copies(folder: Path, percentages: Sequence[int]) -> Iterator[Path]:
    """Write a profile for each planted share."""
    folder.mkdir(parents=True, exist_ok=True)
    for percent in percentages:
        path = folder / f"planted-{percent}.yaml"
        path.write_text(COPY.format(name=path.stem, percent=percent, variable=VARIABLE, share=percent / 100))
        yield path


def _add(folder: Path, commit: str, results: Path) -> None:
    """Add the blocks of a run, unless they are there or it has none. Raise ScriptError where its arms differ."""
    session, recorded_run = session_of(folder, commit), read_run(folder)
    if session.blocks and all(run.session.began != session.began for run in read(results)):
        environments = recorded_run.beginning.environments
        shares = planted_shares([Environment.from_json(environments[name]) for name in session.names])
        if shares is None:
            raise ScriptError(f"{folder}: does not measure the baseline beside copies with planted effects")
        seconds = statistics.fmean(sample.worker_seconds for sample in recorded_run.samples())
        run = Planted(session, shares, round(seconds, 3))
        append_line(results, run.to_json())
        print(f"added: {run.session.arms} arms, {len(run.session.blocks)} blocks, {folder}", flush=True)


def planted_shares(environments: Sequence[Environment]) -> list[float] | None:
    """Return by what share each arm's steps are longer; None where not all arms but the baseline plant one."""
    settings = [
        {**environment.to_json(), "profile": "", "title": "", "variables": _without(environment.variables)}
        for environment in environments
    ]
    copies = environments[1:]
    if any(other != settings[0] for other in settings) or not all(VARIABLE in copy.variables for copy in copies):
        return None
    return [float(environment.variables.get(VARIABLE, 0)) for environment in environments]


def _without(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name != VARIABLE}


def read(path: Path) -> list[Planted]:
    """Return the runs of a file, as ``growing.read`` does."""
    return growing.read(path, Planted.from_json)


def effects(runs: Sequence[Planted]) -> list[Effect]:
    """Return all effects that were planted, by their true ratios."""
    shares = {share for run in runs for share in run.shares[1:]}
    both = [Effect(share, in_reference) for share in shares for in_reference in (False, True)]
    return sorted({effect for effect in both if effect.share or not effect.in_reference}, key=lambda each: each.ratio)


def ends(runs: Sequence[Planted], effect: Effect, length: int) -> Ends:
    """Cut runs into consecutive ones of ``length`` blocks, judge each by the rules of a real run, and count."""
    total = NO_RUNS
    for run in runs:
        for blocks in cut(effect.pairs(run), length):
            for judged in judge(blocks):
                total += _end(judged, effect, run.sample_s)
    return total


def _end(judged: Speedup, effect: Effect, sample_s: float) -> Ends:
    return Ends(
        runs=1,
        right=judged.verdict in effect.right,
        wrong=effect.is_wrong(judged.verdict),
        covered=judged.low <= effect.ratio <= judged.high,
        blocks=(judged.blocks,),
        seconds=(2 * sample_s * judged.blocks,),
    )


def parts(runs: Sequence[Planted]) -> list[str]:
    """Return the parts of the page. ``runs`` may be none: then it says so."""
    opening = growing.opening("Effects planted in the CNN", QUESTION, [run.session for run in runs], "planted")
    if not runs:
        return [opening]
    return [
        opening,
        HOW,
        "## Verdicts",
        VERDICTS,
        page.table(COUNTED, list(_counted(runs)), numbers_from=0),
        "## All blocks together",
        ALL_BLOCKS,
        page.table(("true ratio", "blocks", "estimate", "95% interval", "estimate over truth"), list(_pooled(runs)), 0),
        "## All that was measured",
        page.table(MEASURED, [_row(run) for run in sorted(runs, key=lambda each: each.session.began)], 4),
    ]


def _counted(runs: Sequence[Planted]) -> Iterator[list[str]]:
    """The rows of short runs: of each length all effects together, and then each."""
    found = effects(runs)
    for length in LENGTHS:
        counted = {effect: ends(runs, effect, length) for effect in found}
        for effect, total in counted.items():
            if total.runs:
                yield [str(length), f"{effect.ratio:.3f}", *_cells(total)]
        together = sum((total for effect, total in counted.items() if effect.share), NO_RUNS)
        if together.runs:
            yield [str(length), "all but 1.000", *_cells(together)]


def _cells(total: Ends) -> list[str]:
    return [
        str(total.runs), page.share(total.right, total.runs), str(total.wrong),
        f"{upper_bound(total.wrong, total.runs):.1%}", page.share(total.covered, total.runs),
        f"{statistics.median(total.blocks):g}", f"{statistics.median(total.seconds):.0f} s",
    ]  # fmt: skip


def _pooled(runs: Sequence[Planted]) -> Iterator[list[str]]:
    for effect in effects(runs):
        pairs = [pair for run in runs for pair in effect.pairs(run)]
        ratios = log_ratios([reference for reference, _ in pairs], [arm for _, arm in pairs])
        found = speedup(ratios, ERROR_RATE, MARGIN)
        cells = ["-"] * 3
        if found is not None:
            cells = [f"{found.ratio:.3f}", f"{found.low:.3f} to {found.high:.3f}", f"{found.ratio / effect.ratio:.3f}"]
        yield [f"{effect.ratio:.3f}", str(len(pairs)), *cells]


def _row(run: Planted) -> list[str]:
    session = run.session
    deviation = "-"
    if len(session.blocks) > 1:
        deviation = f"{statistics.stdev(math.log(block[0] / block[1]) for block in session.blocks):.1%}"
    disturbed = sum(bool(arms) for arms in session.disturbed)
    return [
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.began)), session.commit, session.host, session.kernel,
        ", ".join(f"{share:.0%}" for share in run.shares[1:]), str(session.steps), str(len(session.blocks)),
        str(disturbed), f"{1000 * statistics.median(block[0] for block in session.blocks):.1f} ms", deviation,
        f"{run.sample_s:.2f} s",
    ]  # fmt: skip


QUESTION = """Each arm trains as the baseline does, and its steps are longer by a known share. How often is the verdict
right, how often is it wrong, how often does the interval hold the true ratio, and how long does a verdict take?"""
HOW = """## How

`make planted` measures for ten minutes, or as long as `ARGS="--for 1h"` says. It adds its measurements to
[planted.jsonl](planted.jsonl), which only grows. This page is made from that file alone. Each sample is a fresh
process, in blocks of random order, as in every `envkit bench`. After each step of a planted arm the same thread waits,
busily, for a share of the time that this step took. The planted ratio is therefore exact, whatever the machine's speed
is. The effects of a longer step on caches and other threads are not planted."""
VERDICTS = """The blocks of each run are cut into consecutive short runs of 8, 20 and 40. Each is judged as a real run
of two arms and that many planned blocks, with interim analyses. For a ratio below 1 the planted arm is compared with
the baseline. For a ratio above 1 it is the reference, and a copy with nothing planted is compared with it. A verdict is
right if it names the direction. "No difference found" is neither right nor wrong, except where nothing was planted.
"No difference larger than 2%" is wrong where more was planted. Shares have exact 95% intervals. The upper bound of the
rate of wrong verdicts is one-sided (Clopper and Pearson 1934). Rows share blocks, so they are not independent. Blocks
and seconds are medians until a run ended: at an analysis that decided, or after all blocks. Seconds leave out the pilot
run."""
ALL_BLOCKS = """If the planted ratio is exact, the estimates from all blocks agree with it. Blocks of several runs count
together."""
COUNTED = (
    "planned blocks", "true ratio", "runs", "right", "wrong", "upper bound", "interval holds the truth", "blocks",
    "time",
)  # fmt: skip
MEASURED = (
    "begun (UTC)", "commit", "host", "kernel", "planted", "steps", "blocks", "disturbed blocks", "step",
    "sd of a pair without effect", "sample",
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(script.run("planted", main))
