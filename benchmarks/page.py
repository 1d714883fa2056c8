"""The pages in docs/results/ that benchmarks write: their heading, tables, and shares with an interval."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envkit.analysis.engine_facts import cpu_name
from envkit.engines.base import PROJECT
from envkit.worker.host import cpu_facts, fingerprint

from benchmarks.results import Line

PAGES = PROJECT / "docs" / "results"


def machine() -> str:
    """One line about this machine."""
    return described(fingerprint(), cpu_facts(), sys.version.split()[0])


def described(host: Mapping[str, Any], facts: Mapping[str, Any], python: str) -> str:
    """One line about a machine, of which the rest is as an inspection has it, and the version of its ``python``."""
    return (
        f"{cpu_name(host)}, {facts['usable_cpus']} usable CPUs on {facts['physical_cores']} cores, "
        f"{host['hypervisor'] or 'bare metal'}; {host['distribution']}, Linux {host['kernel']}, "
        f"Python {python}"
    )


def command() -> str:
    """How this script was started, as one would type it."""
    return shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]])


def heading(
    title: str, question: str, measured: Sequence[Line] = (), where: str | None = None, typed: str | None = None
) -> str:
    """The beginning of a page; ``measured`` are the lines it is made of, and ``where`` the machine.

    Without them the page is of now and of this machine. ``typed`` is the command that measures the same, where it is
    not the one that was started.
    """
    times = [line["time"] for line in measured] or [time.time()]
    days = sorted({time.strftime("%Y-%m-%d", time.localtime(moment)) for moment in times})
    date = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return (
        f"# {title}\n\n{question.strip()}\n\n- measured: {date}\n- machine: {where or machine()}\n"
        f"- command: `{typed or command()}`\n"
        f"- page written at commit: `{commit()}`"
    )


def commit() -> str:
    """Return the short hash of this checkout's commit, with ``+`` where other files than pages differ from it.

    It is "unknown" without git.
    """
    changed = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs/results"]
    try:
        head, changes = (
            subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "--short=8", "HEAD"], changed)
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changes else "")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None) -> str:
    """A Markdown table; columns from ``numbers_from`` on are aligned to the right."""
    right = len(header) if numbers_from is None else numbers_from
    rule = ["---" if column < right else "---:" for column in range(len(header))]
    lines = [header, rule, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def interval(line: Line) -> str:
    """``1.050 (1.020 to 1.080)``: a ratio with its interval."""
    return f"{line['ratio']:.3f} ({line['low']:.3f} to {line['high']:.3f})"


def proportion(successes: int, trials: int) -> tuple[float, float]:
    """95% interval of a share by C. J. Clopper and E. S. Pearson (Biometrika 26, 1934): exact, never too narrow."""
    from scipy import stats

    interval = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    return float(interval.low), float(interval.high)


def share(successes: int, trials: int) -> str:
    """``3 of 20 (3% to 38%)``: a count with the interval of the share behind it."""
    low, high = proportion(successes, trials)
    return f"{successes} of {trials} ({low:.0%} to {high:.0%})"


def write(path: Path, page_parts: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(part.strip("\n") for part in page_parts if part) + "\n")
    print(f"written: {path}")
