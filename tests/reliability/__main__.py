"""``python -m tests.reliability``: make every fault and print what the kit said of it and what was kept."""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from envkit.engines.base import PROJECT
from envkit.worker.host import cpu_facts, fingerprint
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.reliability.attacks import ATTACKS
from tests.reliability.list import FAULTS
from tests.reliability.trial import CantPlant, Fault, Finding

DOCS = PROJECT / "docs/results/reliability.md"
COLUMNS = ("fault", "what was done", "what envkit printed", "what was kept", "held")
INTRO = """# Faults that a run and its record survive

`make reliability` wrote this page on {date}, on {machine}.

Each fault is made for real, through the command line. Simulated workers answer at once, so that many runs fit into a
minute. A fault has "held" if all of this is true:

- no whole line of the record was lost or changed, and no sample was counted twice;
- every block of the finished run has one sample of each arm;
- no process was left behind;
- a refusal is one line.

`tests/reliability/list.py` lists the faults, and `make test` runs them too.
"""
ATTACKED = """
## Other users, files from outside and the network

About forty attacks and mishaps were tried by hand. This is what they did, and the test that makes each one today.
[SECURITY.md](../../SECURITY.md) says from what envkit protects you.
"""
Result = tuple[Fault, Finding]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--docs", action="store_true", help=f"write {DOCS.relative_to(PROJECT)} as well")
    arguments = parser.parse_args()
    chosen = [fault for fault in FAULTS if not arguments.only or fault.name in arguments.only]
    found: list[Result] = []
    not_made: list[str] = []
    begin = time.monotonic()
    for fault in track(chosen, "making faults", console=Console(stderr=True), transient=True):
        with tempfile.TemporaryDirectory(prefix="envkit-reliability-") as folder:
            try:
                found.append((fault, fault.try_out(Path(folder))))
            except CantPlant as error:
                not_made.append(f"{fault.title} ({error})")
    _show(found, not_made)
    if arguments.docs:
        DOCS.parent.mkdir(exist_ok=True)
        DOCS.write_text(_markdown(found, not_made))
    held = sum(not finding.wrong for _, finding in found)
    print(f"{held} of {len(found)} held; {time.monotonic() - begin:.0f} s in all")
    return 0 if held == len(found) else 1


def _rows(found: Sequence[Result]) -> list[tuple[str, ...]]:
    return [
        (fault.title, one.done, one.said.removeprefix("envkit: "), one.kept, "; ".join(one.wrong) or "yes")
        for fault, one in found
    ]


def _show(found: Sequence[Result], not_made: Sequence[str]) -> None:
    table = Table(*COLUMNS, show_lines=True)
    for row in _rows(found):
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    terminal = Console()
    (terminal if terminal.is_terminal else Console(width=160)).print(table)
    for text in not_made:
        print(f"not made: {text}")


def _markdown(found: Sequence[Result], not_made: Sequence[str]) -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS), *_rows(found)]
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    end = f"{sum(not one.wrong for _, one in found)} of {len(found)} held."
    missing = ["", "Not made, because it can't be done here:", "", *(f"- {text}" for text in not_made)]
    intro = INTRO.format(date=time.strftime("%Y-%m-%d"), machine=_machine())
    return "\n".join([intro, *lines, "", end, *(missing if not_made else []), ATTACKED, *attack_rows()]) + "\n"


def attack_rows() -> list[str]:
    """Return the lines of the table of attacks."""
    rows = [("attack", "before", "now", "test"), ("---",) * 4]
    rows += [(one.what, one.before, one.now, ", ".join(f"`{name}`" for name in one.tests)) for one in ATTACKS]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]


def _machine() -> str:
    seen, cpus = fingerprint(), cpu_facts()["usable_cpus"]
    system = f"{seen['distribution']}, Linux {seen['kernel']}, Python {platform.python_version()}"
    return f"{seen['cpu_model']} with {cpus} usable CPUs, {system}"


if __name__ == "__main__":
    sys.exit(main())
