"""``python -m tests.faults``: plant every fault and print what a plain launch says of it and what the kit says."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from envkit.common.errors import BAD_INPUT, InputError
from envkit.common.machine_lock import machine_lock
from envkit.engines.base import PROJECT
from envkit.rendering import text_of
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.cases.__main__ import answers
from tests.cases.__main__ import row as row_of
from tests.cases.case import Case, Outcome
from tests.faults.list import FAULTS
from tests.faults.trial import SHORT, SILENCE, CantPlant, Finding, try_out
from tests.processes import BRIEF_ENVKIT

DOCS = PROJECT / "docs/results/faults.md"
COLUMNS = ("fault", "plain launch shows", "envkit prints", "caught")
INTRO = """# Faults that envkit must catch

`make faults` wrote this page. It plants each fault on the machine that it runs on and trains twice. The plain launch
runs the same worker with the profile's variables exported, without envkit. The other launch goes through envkit.
"Caught" means that envkit printed these words and ended with this exit status. `tests/faults/list.py` lists the faults,
and `make test` plants them too.
"""
CASES_INTRO = """
## Programs that people had trouble with

Each is a short program of our own for a kind of report that people wrote about PyTorch, its launchers or allocators.
"Right" means that envkit printed these words and ended with this exit status. `tests/cases/list.py` lists the cases,
and `make cases` runs them alone.
[troubleshooting.md](../troubleshooting.md) says what to do.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--docs", action="store_true", help=f"write {DOCS.relative_to(PROJECT)} as well")
    parser.add_argument("--clean", metavar="N", type=int, help="measure without a fault N times: nothing may be found")
    arguments = parser.parse_args()
    try:
        with machine_lock():
            return _clean(arguments.clean) if arguments.clean else _plant(arguments.only, arguments.docs)
    except InputError as error:
        print(f"faults: {text_of(error)}", file=sys.stderr)
        return BAD_INPUT


def _plant(only: Sequence[str] | None, docs: bool) -> int:
    faults = [fault for fault in FAULTS if not only or fault.name in only]
    found: list[Finding] = []
    not_planted: list[str] = []
    begin = time.monotonic()
    for fault in track(faults, "planting", console=Console(stderr=True), transient=True):
        try:
            found.append(try_out(fault))
        except CantPlant as error:
            not_planted.append(f"{fault.title} ({error})")
        except subprocess.SubprocessError as error:  # the others are to be tried all the same
            found.append(Finding(fault, "-", f"NOT CAUGHT: {error}", False))
    _show(found, not_planted)
    if docs:
        DOCS.parent.mkdir(exist_ok=True)
        DOCS.write_text(_markdown(found, not_planted, answers()))
    caught = sum(one.caught for one in found)
    silent = sum(one.plain == SILENCE for one in found)
    print(f"{silent} of {len(found)} plain launches train and say nothing; {time.monotonic() - begin:.0f} s in all")
    print(f"{caught} of {len(found)} caught")
    return 0 if caught == len(found) else 1


def _rows(found: Sequence[Finding]) -> list[tuple[str, ...]]:
    return [(one.fault.title, one.plain, one.kit, "yes" if one.caught else "NO") for one in found]


def _show(found: Sequence[Finding], not_planted: Sequence[str]) -> None:
    table = Table(*COLUMNS, show_lines=True)
    for row in _rows(found):
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    terminal = Console()
    (terminal if terminal.is_terminal else Console(width=160)).print(table)
    for text in not_planted:
        print(f"not planted: {text}")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    every = [columns, ("---",) * len(columns), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in every]


def _markdown(found: Sequence[Finding], not_planted: Sequence[str], tried: Sequence[tuple[Case, Outcome]]) -> str:
    lines = _table(COLUMNS, _rows(found))
    cases = _table(("case", "command", "envkit prints", "right"), [row_of(*one) for one in tried])
    right = f"{sum(outcome.right for _, outcome in tried)} of {len(tried)} answers are right."
    end = f"{sum(one.caught for one in found)} of {len(found)} caught."
    missing = ["", "Not planted, because it can't be done here:", "", *(f"- {text}" for text in not_planted)]
    planted = [INTRO, *lines, "", end, *(missing if not_planted else [])]
    return "\n".join([*planted, CASES_INTRO, *cases, "", right]) + "\n"


def clean_findings() -> list[str]:
    """What the kit finds wrong with a baseline run without any fault: everything here is a false alarm."""
    with tempfile.TemporaryDirectory(prefix="envkit-clean-") as folder:
        result = subprocess.run(
            [sys.executable, "-c", BRIEF_ENVKIT, "bench", "baseline", *SHORT, "--output", f"{folder}/run", "--json"],
            cwd=PROJECT, env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if result.returncode != 0:
        return [f"exit status {result.returncode}: {result.stderr}"]
    document = json.loads(result.stdout)
    wrong = [finding["seen"] for finding in document["findings"]] + [str(one) for one in document["failures"]]
    return wrong + [f"{one['arm']} not in effect" for one in document["measured"] if not one["in_effect"]]


def _clean(times: int) -> int:
    alarms = [clean_findings() for _ in track(range(times), "measuring", console=Console(stderr=True), transient=True)]
    for found in alarms:
        for text in found:
            print(f"false alarm: {text}")
    print(f"{sum(not found for found in alarms)} of {times} clean runs without a finding")
    return 1 if any(alarms) else 0


if __name__ == "__main__":
    sys.exit(main())
