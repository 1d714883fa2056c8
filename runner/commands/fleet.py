"""``runner fleet report DIR``: one report of the same measurement on many nodes."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from runner import atomic, report
from runner.arguments import share
from runner.errors import FAILED, MEASURED, InputError
from runner.plan import MARGIN

# The word that stands where a profile to measure would: no profile can have this name.
REPORT = "report"
EXIT_STATUSES = (
    "exit status: 0 done, and no node is slow or left out; 1 a worker failed, or a node is slow or can't be compared; "
    "2 bad input; 130 interrupted"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXIT_STATUSES
    parser.add_argument("action", metavar=REPORT, help="report on what was measured")
    parser.add_argument("folder", metavar="DIR", type=Path,
                        help="folder with one folder per node, each with the record of a run")  # fmt: skip
    parser.add_argument("--profile", metavar="NAME", help="judge nodes by this one, where they measured several")
    parser.add_argument("--margin", metavar="SHARE", type=share, default=MARGIN,
                        help="let pass so much more time than the middle node takes (default: 2%%)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON for scripts, with every node")
    group = parser.add_argument_group("instead of printing it")
    group.add_argument("--html", metavar="FILE", type=Path, help="write one page with pictures, for a browser")
    group.add_argument("--prometheus", metavar="FILE", type=Path,
                       help="write Prometheus' text format, as its textfile collector takes it")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if arguments.action != REPORT:
        raise InputError(f"fleet {arguments.action}: is not known; give: runner fleet {REPORT} DIR")
    from runner.fleet import findings

    fleet = findings.find(arguments.folder, arguments.profile, arguments.margin)
    written = {}
    if arguments.html:
        from runner.fleet import page  # drawing takes a second to load

        written[arguments.html] = page.page(fleet).encode()
    if arguments.prometheus:
        from runner.fleet import prometheus

        written[arguments.prometheus] = prometheus.render(fleet)
    for path, content in written.items():
        atomic.write(path, content)
        print(f"runner: written: {path}", file=sys.stderr)
    if arguments.json:
        from runner.fleet import document

        print(json.dumps(document.document(fleet), allow_nan=False))
    elif not written:
        from runner.fleet import terminal

        terminal.show(fleet, report.console())
    return FAILED if fleet.of(findings.SLOW) or fleet.left_out else MEASURED
