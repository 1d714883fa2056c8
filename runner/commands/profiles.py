"""``runner profiles``: what there is to choose from."""

from __future__ import annotations

import argparse
import json

from rich.table import Table

from runner import profile, report
from runner.errors import MEASURED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")


def run(arguments: argparse.Namespace) -> int:
    loaded = [profile.load(name) for name in (*profile.names(), *profile.local_names())]
    if arguments.json:
        keys = ("name", "title", "preload", "numerics")
        print(json.dumps([{key: getattr(one, key) for key in keys} for one in loaded]))
        return MEASURED
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("profile", "what it does", "preloads"):
        table.add_column(column)
    for one in loaded:
        table.add_row(one.name, one.title, ", ".join(one.preload) or "-")
    report.console().print(table)
    return MEASURED
