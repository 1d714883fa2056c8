"""``runner report DIR``: the report of a run, from its record alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from runner import record, report
from runner.errors import MEASURED
from runner.summary import summarise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of a run, for example results/…-intel-omp")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")


def run(arguments: argparse.Namespace) -> int:
    summary = summarise(record.read(arguments.folder))
    if arguments.json:
        print(json.dumps(summary.to_json()))
    else:
        report.show(summary, str(arguments.folder), report.console())
    return MEASURED
