"""One small matrix, again on each host and day: how much do speedups differ between sessions?

Each call measures the same four profiles beside the baseline, and adds one line to a file that only grows.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from envkit.bench.study import MARGIN
from envkit.stats.interval import ERROR_RATE, log_ratios, middle_of, speedup
from envkit.stats.power import EFFICIENCY, interval_scale

from benchmarks import growing, page, random_effects, script
from benchmarks.errors import ScriptError
from benchmarks.recorded import session_of
from benchmarks.results import append_line
from benchmarks.same import read
from benchmarks.short_runs import Session

PROFILES = ("glibc-retain", "jemalloc-retain", "mimalloc-retain", "intel-omp")
TIME_S = 240.0
# Before so many sessions there is no prediction of the next.
LEAST_SESSIONS = 5


def main() -> int:
    parser = growing.bench_parser("sessions", __doc__, TIME_S)
    arguments = growing.parse(parser)
    add = partial(_add, results=arguments.results)
    measure = partial(growing.bench, arguments, "session", PROFILES, arguments.time, add)
    return growing.run(arguments, "session", measure, add, lambda: parts(read(arguments.results)))


def _add(folder: Path, commit: str, results: Path) -> None:
    """Add a run, unless it is there. Raise ScriptError where it has other profiles."""
    session = session_of(folder, commit)
    if session.names != ["baseline", *PROFILES]:
        raise ScriptError(f"{folder}: measures other profiles than {', '.join(PROFILES)}")
    if session.blocks and all(other.began != session.began for other in read(results)):
        append_line(results, session.to_json())


def parts(sessions: Sequence[Session]) -> list[str]:
    """Return the parts of the page, which says so if there are no sessions yet."""
    opening = growing.opening("Repeats of one matrix", QUESTION, sessions, "sessions")
    if not sessions:
        return [opening]
    ordered = sorted(sessions, key=lambda session: session.began)
    missing = LEAST_SESSIONS - len(ordered)
    prediction = "" if missing <= 0 else MISSING.format(least=LEAST_SESSIONS, missing=missing)
    return [
        opening,
        HOW,
        "## Between sessions",
        page.table(BETWEEN, [_between(ordered, profile) for profile in PROFILES], numbers_from=1),
        prediction,
        "## Each session",
        page.table(("begun (UTC)", "commit", "host", "blocks", *PROFILES), [_row(session) for session in ordered], 3),
    ]


def ratios(session: Session, profile: str) -> list[float]:
    """Return the logarithm of the baseline's time over the profile's, of each block."""
    arm = session.names.index(profile)
    return log_ratios([block[0] for block in session.blocks], [block[arm] for block in session.blocks])


def _between(sessions: Sequence[Session], profile: str) -> list[str]:
    scaled = [(values, interval_scale(values)) for values in (ratios(session, profile) for session in sessions)]
    known = [(values, scale) for values, scale in scaled if scale]
    fitted = random_effects.fit(
        [middle_of(values) for values, _ in known],
        [scale**2 / (len(values) * EFFICIENCY) for values, scale in known],
    )
    if fitted is None:
        return [profile, *["-"] * 5]
    deviation = f"{math.expm1(fitted.deviation):.1%}"
    interval, following = _span(fitted.low, fitted.high), "-"
    if len(known) >= LEAST_SESSIONS:
        following = _span(fitted.next_low, fitted.next_high)
        deviation += f" (at most {math.expm1(fitted.deviation_high):.1%})"
    return [profile, f"{math.exp(fitted.mean):.3f}", interval, deviation, f"{fitted.share:.0%}", following]


def _span(low: float, high: float) -> str:
    return f"{math.exp(low):.3f} to {math.exp(high):.3f}"


def _row(session: Session) -> list[str]:
    cells = []
    for profile in PROFILES:
        found = speedup(ratios(session, profile), ERROR_RATE, MARGIN)
        cells.append("-" if found is None else f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f})")
    begun = time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.began))
    return [begun, session.commit, session.host, str(len(session.blocks)), *cells]


QUESTION = """The interval of a run holds for its session. How much does the speedup of the same profile differ between
sessions, on other days and other hosts?"""
HOW = """## How

`make sessions` measures four profiles and the baseline for four minutes, and adds a line to
[sessions.jsonl](sessions.jsonl). That file only grows, and this page is made from it alone. jemalloc must be installed
(`apt-get install libjemalloc2`); without it the command ends before it measures, and says so. Blocks of an interrupted
session count.

All figures between sessions are those of one random-effects model (`benchmarks/random_effects.py`). A session's log
speedup is taken for the mean of all sessions, plus an effect of the session, plus an error within it, whose variance
its own blocks tell. How sure each variance between sessions is follows from Cochran's Q (Viechtbauer 2007). The
deviation is the square root of its median and of its upper limit. Both intervals are taken over all these variances
(Nagashima et al. 2019). The share is that of sessions in the variance of a typical session's speedup, I² at the median
(Higgins and Thompson 2002). Limits have a confidence of 95% each.

Sessions of one day and one host show less deviation than others."""
BETWEEN = ("profile", "speedup", "95% interval", "deviation between sessions", "its share", "next session (95%)")
MISSING = """A limit of the deviation and an interval for the next session need {least} sessions: {missing} more."""

if __name__ == "__main__":
    sys.exit(script.run("sessions", main))
