"""One small matrix, again on each host and day: how much do speedups differ between sessions?

Each call measures the same four profiles beside the baseline, and adds one line to a file that only grows.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from envkit.bench.study import MARGIN
from envkit.stats.across_nodes import HODGES_LEHMANN, AcrossNodes, across_nodes
from envkit.stats.interval import ERROR_RATE, log_ratios, speedup

from benchmarks import growing, page, script
from benchmarks.errors import ScriptError
from benchmarks.recorded import raw_samples
from benchmarks.results import FOLDER, append_line
from benchmarks.same import read, session_of
from benchmarks.short_runs import Session

PROFILES = ("glibc-retain", "jemalloc-retain", "mimalloc-retain", "intel-omp")
TIME_S = 240.0
# Before so many sessions there is no prediction of the next.
LEAST_SESSIONS = 5


def main() -> int:
    arguments = growing.parse(growing.parser("sessions", __doc__ or "", TIME_S))
    if arguments.add is None:
        commit = page.commit()
        folder = FOLDER / "sessions" / time.strftime("%Y%m%d-%H%M%S")
        options = ("--budget", f"{arguments.time:g}s", "--half-width", growing.NEVER_PRECISE, "--keep-arms")
        script.runner("bench", *PROFILES, *options, "--output", folder, purpose=str(folder))
        _add(folder, commit, arguments.results)
    for folder in arguments.add or ():
        _add(folder, arguments.commit, arguments.results)
    page.write(arguments.page, parts(read(arguments.results)))
    return 0


def _add(folder: Path, commit: str, results: Path) -> None:
    """Add a run, unless it is there. Raise ScriptError where it has other profiles."""
    session = session_of(raw_samples(folder), commit)
    if session.names != ["baseline", *PROFILES]:
        raise ScriptError(f"{folder}: measures other profiles than {', '.join(PROFILES)}")
    if session.blocks and all(other.began != session.began for other in read(results)):
        append_line(results, session.to_json())


def parts(sessions: Sequence[Session]) -> list[str]:
    """Return the parts of the page, which says so if there are no sessions yet."""
    if not sessions:
        return ["# Repeats of one matrix", QUESTION, "Nothing is measured yet."]
    ordered = sorted(sessions, key=lambda session: session.began)
    times, hosts = [{"time": session.began} for session in ordered], sorted({session.host for session in ordered})
    missing = LEAST_SESSIONS - len(ordered)
    prediction = "" if missing <= 0 else MISSING.format(least=LEAST_SESSIONS, missing=missing)
    return [
        page.heading("Repeats of one matrix", QUESTION, times, "; ".join(hosts), "make sessions"),
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
    of_session = [ratios(session, profile) for session in sessions]
    pooled = across_nodes(of_session, ERROR_RATE, MARGIN)
    if pooled is None:
        return [profile, *["-"] * 5]
    found = pooled.speedup
    deviation = f"{pooled.between:.1%} (at most {pooled.between_high:.1%})"
    following = f"{pooled.another_low:.3f} to {pooled.another_high:.3f}" if pooled.nodes >= LEAST_SESSIONS else "-"
    interval, share = f"{found.low:.3f} to {found.high:.3f}", f"{share_between(pooled, of_session):.0%}"
    return [profile, f"{found.ratio:.3f}", interval, deviation, share, following]


def share_between(pooled: AcrossNodes, of_session: Sequence[Sequence[float]]) -> float:
    """Return the share of sessions in the variance of a session's speedup (I squared of a typical session)."""
    import numpy

    chosen = [numpy.asarray(values) for values in of_session if len(values) > 1]
    within = float(numpy.mean([values.var(ddof=1) * HODGES_LEHMANN / len(values) for values in chosen]))
    between = math.log1p(pooled.between) ** 2
    return between / (between + within)


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
[sessions.jsonl](sessions.jsonl). That file only grows, and this page is made from it alone. A session's log speedup is
taken for the mean of all sessions, plus an effect of the session, plus noise within it (random effects). The deviation
between sessions has a half-normal prior of 10%; the table has its posterior median and upper limit. The share is that
of sessions in the variance of one session's speedup. Intervals have a confidence of 95% each. With few sessions the
prior decides most of the deviation. Sessions of one day and one host show less of it than others."""
BETWEEN = ("profile", "speedup", "95% interval", "deviation between sessions", "its share", "next session (95%)")
MISSING = "A prediction interval for the next session needs {least} sessions: {missing} more."

if __name__ == "__main__":
    sys.exit(script.run("sessions", main))
