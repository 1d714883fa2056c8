"""The page of the baseline against itself: how often short runs are wrong, and all that was measured, by host."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from functools import lru_cache

from benchmarks import growing, page
from benchmarks.short_runs import STARTS, Counts, Session, count, rate_of_any_start

LENGTHS = (8, 20, 45)
# A rate that is to be shown to lie below EXCLUDED, where it is EXPECTED, with this power.
EXPECTED, EXCLUDED, POWER = 0.05, 0.10, 0.8


def parts(sessions: Sequence[Session]) -> list[str]:
    """Return the parts of the page. ``sessions`` may be none: then it says so."""
    opening = growing.opening("The baseline against itself", QUESTION, sessions, "same")
    if not sessions:
        return [opening]
    return [
        opening,
        HOW,
        "## Short runs",
        SHORT,
        page.table(COUNTED, list(_counted(sessions)), numbers_from=2),
        EARLIER,
        "## How many runs a bound needs",
        BOUND.format(
            of_20=upper_bound(0, 20), two_sided=page.proportion(0, 20)[1], runs=runs_needed(),
            expected=EXPECTED, excluded=EXCLUDED, power=POWER,
        ),
        "## All that was measured",
        page.table(MEASURED, [_row(session) for session in sorted(sessions, key=lambda each: each.began)], 5),
    ]  # fmt: skip


def _counted(sessions: Sequence[Session]) -> list[list[str]]:
    """The rows of short runs: of each number of arms, all hosts together and then each of several.

    Behind them come the pairs of the arms of all sessions, each as a run of two arms.
    """
    hosts = sorted({session.host for session in sessions})
    by_arms = {str(arms): [session for session in sessions if session.arms == arms]
               for arms in sorted({session.arms for session in sessions})}  # fmt: skip
    by_arms["2, all pairs"] = [pair for session in sessions for pair in session.pairs()]
    rows = []
    for arms, of_arms in by_arms.items():
        for host in ("all", *hosts) if len(hosts) > 1 else hosts:
            chosen = [session for session in of_arms if host in ("all", session.host)]
            for length in LENGTHS if chosen else ():
                calls = length / statistics.fmean(len(session.blocks) for session in chosen)
                rate = rate_of_any_start(chosen, length)
                any_start = "-" if rate is None else f"{rate:.1%}"
                rows.append([host, arms, str(length), f"{calls:.1f}", *_cells(count(chosen, length)), any_start])
    return rows


def _cells(counts: Counts) -> list[str]:
    decided, width, bound = counts.runs - counts.undecided, "-", "-"
    if counts.half_widths:
        width = f"±{statistics.median(counts.half_widths):.1%}"
    if decided:
        bound = f"{upper_bound(counts.claimed, decided):.1%}"
    covered = f"{counts.covered} of {decided}"
    return [str(counts.runs), str(counts.undecided), str(counts.claimed), bound, covered, str(counts.equivalent), width]


def _row(session: Session) -> list[str]:
    differences = [math.log(block[0] / block[1]) for block in session.blocks]
    deviation = f"{statistics.stdev(differences):.1%}" if len(differences) > 1 else "-"
    seconds = statistics.median(block[0] for block in session.blocks)
    disturbed = sum(bool(arms) for arms in session.disturbed)
    return [
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.began)), session.commit, session.cpu,
        str(session.usable_cpus), session.kernel, str(session.arms), str(session.steps), str(len(session.blocks)),
        str(disturbed), f"{1000 * seconds:.1f} ms", deviation,
    ]  # fmt: skip


def upper_bound(successes: int, trials: int) -> float:
    """Return the one-sided exact 95% upper bound of a share (Clopper and Pearson 1934)."""
    from scipy import stats

    return float(stats.binomtest(successes, trials, alternative="less").proportion_ci(0.95, method="exact").high)


@lru_cache(maxsize=1)
def runs_needed() -> int:
    """Return the fewest runs of which the bound is below EXCLUDED with a chance of POWER, where EXPECTED is true.

    A bound is below a rate exactly if so few successes or fewer have a chance below 5% at that rate.
    """
    import numpy
    from scipy import stats

    runs = numpy.arange(1, 1001)
    most = stats.binom.ppf(0.05, runs, EXCLUDED) - 1  # the most successes with a bound below EXCLUDED
    reached = stats.binom.cdf(most, runs, EXPECTED) >= POWER
    return int(runs[reached][0])


QUESTION = """All arms of the comparison are the same: the baseline. A verdict "faster" or "slower" is then wrong. At
most 5% of the runs may have one. How often does a run have one, on the real workload?"""
HOW = """## How

`make same` measures for ten minutes, or as long as `ARGS="--for 1h"` says. It adds its measurements to
[same.jsonl](same.jsonl), which only grows. This page is made from that file alone. In half of the time the CNN's
baseline is measured beside one copy of itself, in the other half beside six. Each sample is a fresh process, in blocks
of random order, as in every `envkit bench`."""
SHORT = f"""The blocks of all calls on one machine are joined in their order, and cut into consecutive short runs of 8,
20 and 45. Each is judged as a real run of that many blocks by this commit: with interim analyses, the same intervals
and one error rate for all of its comparisons. A run with seven arms is judged as with `--keep-arms`, and is wrong if
any of its six comparisons is. A run is undecided if its blocks are too few for an interval at that error rate; it is
neither right nor wrong. *2, all pairs* takes each run apart into pairs of arms that share no sample: three of seven
arms. So these rows use all samples, and those of the other rows again.

A machine is a CPU model, a number of CPUs and a kernel. Joining calls is sound here. All arms of a block are equal, so
its ratios are symmetric about 1 in every call, and the intervals ask for no more: calls may differ in noise and commit.
The column "calls for one" says how many calls fill one run of that length, by the mean of the calls so far. Blocks that
fill no run wait for the next call.

The upper bound of the rate of wrong runs is one-sided, exact, and has a confidence of 95% (Clopper and Pearson 1934).
Rows of other lengths use the same blocks again, so they don't add up. The half-width is a median. Where the first run
begins is arbitrary, and decides which blocks make a run. *Wrong by any start* is the rate over {STARTS} such starts.
Their runs overlap, so it has no bound."""
EARLIER = """Twenty runs of 240 s on 2026-11-24, on another machine, had no wrong verdict, and all 20 intervals held 1.
Their samples were not kept, so they are not among the rows above."""
COUNTED = (
    "host",
    "arms",
    "blocks",
    "calls for one",
    "runs",
    "undecided",
    "wrong",
    "upper bound",
    "all intervals hold 1",
    "2% excluded",
    "half-width",
    "wrong by any start",
)
BOUND = """With 0 wrong of 20 runs the rate may still be {of_20:.0%} (one-sided), or {two_sided:.0%} by the upper end of
a two-sided interval. To exclude {excluded:.0%} where {expected:.0%} is true takes {runs} runs, with a power of
{power:.0%}."""
MEASURED = (
    "begun (UTC)", "commit", "CPU", "CPUs", "kernel", "arms", "steps", "blocks", "disturbed blocks", "step",
    "sd of a pair",
)  # fmt: skip
