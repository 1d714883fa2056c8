"""``envkit export``: what was recorded, for spreadsheets, data frames, databases and monitoring."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from envkit.analysis import recorded_runs
from envkit.bench import record
from envkit.cli import measuring
from envkit.cli.arguments import add_redact_option
from envkit.cli.commands.messages import LeftOut
from envkit.cli.commands.results_messages import HoldsNoRuns, NotForTerminal, NothingMeasured
from envkit.cli.parser import Parser
from envkit.common import atomic, extras, output
from envkit.common.errors import MEASURED, InputError
from envkit.common.folders import short
from envkit.rendering import text
from envkit.report.exports import FORMATS, Format
from envkit.report.exports.rows import Row
from envkit.report.redaction import Redaction


def add_arguments(parser: Parser) -> None:
    parser.add_argument("folders", metavar="DIR", nargs="*", type=Path,
                        help="folder of a run, or a folder that holds runs (default: ./results)")  # fmt: skip
    parser.add_argument("--format", metavar="FORMAT", choices=FORMATS, required=True,
                        help="write csv, json, parquet: a row per sample; openmetrics: the results")  # fmt: skip
    parser.add_argument("--output", metavar="FILE", type=Path, help="write to FILE (default: standard output)")
    add_redact_option(parser)


def run(arguments: argparse.Namespace) -> int:
    chosen = FORMATS[arguments.format]
    if chosen.binary and arguments.output is None:
        raise InputError(NotForTerminal(arguments.format))
    if chosen.package is not None:
        extras.require(f"--format {arguments.format}", chosen.package)
    places = arguments.folders or [short(measuring.results())]  # short, as it becomes a part of each row
    folders = {place: recorded_runs.folders(place) for place in places}
    rows: list[Row] = []
    redaction = Redaction() if arguments.redact else None
    for folder in dict.fromkeys(folder for inner in folders.values() for folder in inner):
        try:
            rows += _rows(chosen, folder, redaction)
        except InputError as error:
            if folder in places:
                raise  # asked for by name
            left_out = LeftOut(redaction.value(error.message) if redaction else error.message)
            print(f"envkit: {text(left_out)}", file=sys.stderr)
    if not any(folders.values()):
        raise InputError(HoldsNoRuns(str(places[0])))
    if not rows:
        print(f"envkit: {text(NothingMeasured(str(places[0])))}", file=sys.stderr)
    content = chosen.render(rows)
    if arguments.output is None:
        output.document(content)
    else:
        atomic.write(arguments.output, content)
    return MEASURED


def _rows(chosen: Format, folder: Path, redaction: Redaction | None) -> list[Row]:
    events = record.read(folder)
    with record.reading(folder):
        if redaction is not None:
            return chosen.rows(Path(redaction.path(folder)), redaction.events(events, folder))
        return chosen.rows(folder, events)
