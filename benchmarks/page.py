"""The pages in docs/results/ that benchmarks write: their heading, tables, and shares with an interval."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.results import Line
from runner.analysis.engine_facts import cpu_name
from runner.engines.base import PROJECT
from runner.worker.host import cpu_facts, fingerprint

PAGES = PROJECT / "docs" / "results"


def machine() -> str:
    """One line about this machine."""
    host, facts = fingerprint(), cpu_facts()
    return (
        f"{cpu_name(host)}, {facts['usable_cpus']} usable CPUs on {facts['physical_cores']} cores, "
        f"{host['hypervisor'] or 'bare metal'}; {host['distribution']}, Linux {host['kernel']}, "
        f"Python {sys.version.split()[0]}"
    )


def command() -> str:
    """How this script was started, as one would type it."""
    return shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *sys.argv[1:]])


def heading(title: str, question: str, measured: Sequence[Line], where: str) -> str:
    """The beginning of a page; ``measured`` are the lines it is made of, and ``where`` the machine."""
    days = sorted({time.strftime("%Y-%m-%d", time.localtime(line["time"])) for line in measured})
    date = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return f"# {title}\n\n{question}\n\n- measured: {date}\n- machine: {where}\n- command: `{command()}`"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int | None = None) -> str:
    """A Markdown table; columns from ``numbers_from`` on are aligned to the right."""
    right = len(header) if numbers_from is None else numbers_from
    rule = ["---" if column < right else "---:" for column in range(len(header))]
    lines = [header, rule, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def items(pairs: Iterable[tuple[str, str]]) -> str:
    """A list; what has no label goes on below the one before it."""
    return "\n".join(f"- {label}: {text}" if label else f"  - {text}" for label, text in pairs)


def interval(found: Line) -> str:
    """``1.050 (1.020 to 1.080)``: a ratio with its interval."""
    return f"{found['ratio']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def proportion(successes: int, trials: int) -> tuple[float, float]:
    """95% interval of a share by C. J. Clopper and E. S. Pearson (Biometrika 26, 1934): exact, never too narrow."""
    from scipy import stats

    found = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def share(successes: int, trials: int) -> str:
    """``3 of 20 (3% to 38%)``: a count with the interval of the share behind it."""
    low, high = proportion(successes, trials)
    return f"{successes} of {trials} ({low:.0%} to {high:.0%})"


def write(path: Path, parts: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(part.strip("\n") for part in parts if part) + "\n")
    print(f"written: {path}")
