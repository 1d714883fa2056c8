"""``envkit report DIR``: the report of a run, from its record alone: terminal, page, pictures or Markdown.

A submission has a table of its nodes, or its run's report if it has one run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envkit.analysis import recorded_runs
from envkit.analysis.result import conclude
from envkit.bench import record
from envkit.bench.run import Run
from envkit.cli.arguments import add_redact_option, option
from envkit.cli.commands import results_messages as messages
from envkit.cli.parser import Parser
from envkit.common import atomic, extras, output
from envkit.common.errors import MEASURED, InputError
from envkit.common.folders import short
from envkit.common.printable import encoded
from envkit.rendering import text
from envkit.report import markdown, model, terminal
from envkit.report.redaction import Redaction

if TYPE_CHECKING:
    from envkit.cluster.slurm.collect import NodeResult
    from envkit.cluster.slurm.settings import Settings

Value = TypeVar("Value")

STANDARD_OUTPUT = Path("-")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of a run, e.g. results/…-intel-omp")
    parser.add_argument("--details", action="store_true", help="add machine, settings, evidence and commands")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_redact_option(parser)
    group = parser.add_argument_group("instead of printing it")
    group.add_argument("--html", metavar="FILE", type=Path, help="write one page with pictures, for a browser")
    group.add_argument("--png", metavar="FILE", type=Path, help="write the pictures, for a paper")
    group.add_argument("--markdown", metavar="FILE", type=Path, nargs="?", const=STANDARD_OUTPUT,
                       help="write tables for a pull request; without FILE, print them")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    _require(arguments)
    if record.is_submission(arguments.folder):
        return _of_submission(arguments)
    events, files = record.read(arguments.folder), dict[Path, bytes]()
    with record.reading(arguments.folder):
        named = str(arguments.folder)
        if arguments.redact:
            redaction = Redaction()
            events, named = redaction.events(events, arguments.folder), redaction.path(arguments.folder)
        result = conclude(Run.parse(events))
        if arguments.html:
            from envkit.report import html  # which takes long to import, as pictures do

            files[arguments.html] = encoded(html.page(Path(named), events, result))
        if arguments.png:
            from envkit.report import pictures

            if not result.samples:
                raise InputError(messages.NothingToDraw(str(arguments.png)))
            files[arguments.png] = pictures.png(result)
        if arguments.markdown:
            report = model.report_of(result, named, events, wide=True)
            files[arguments.markdown] = encoded(markdown.document(report))
    for path, content in files.items():
        if path == STANDARD_OUTPUT:
            output.document(content)
        else:
            atomic.write(path, content)
            print(f"envkit: written: {path}", file=sys.stderr)
    with record.reading(arguments.folder):
        if arguments.json:
            print(json.dumps(model.to_json(result, named)))
        elif arguments.details or not files:
            terminal.show(model.report_of(result, named, full=arguments.details), terminal.console())
    return MEASURED


def _require(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that don't go together, or whose libraries are missing."""
    if arguments.markdown == STANDARD_OUTPUT and (arguments.json or arguments.details):
        raise InputError(messages.MarkdownPrints())
    if arguments.html:
        extras.require("--html", *extras.PAGE)
    if arguments.png:
        extras.require("--png", *extras.PICTURE)


def _of_submission(arguments: argparse.Namespace) -> int:
    from envkit.cluster.slurm import collect, node_status, table
    from envkit.cluster.slurm.settings import Settings

    folder = arguments.folder
    with record.reading(folder):
        settings = Settings.from_json(record.first(folder, "submit")["settings"])
    if settings.fleet:
        raise InputError(messages.OfFleet(str(folder), ("envkit", "fleet", "report", str(short(folder)))))
    begun = [name for name in node_status.begun(folder) if record.is_begun(folder / name)]
    runs = sorted(begun, key=recorded_runs.natural)
    if not runs:
        follow = ("envkit", settings.by, "--resume", str(short(folder)))
        raise InputError(messages.NothingMeasuredYet(str(folder), follow))
    if len(runs) == 1:
        arguments.folder = folder / runs[0]
        status = run(arguments)
        results = collect.collect(folder, settings, None)
        _tell(_hidden(_redaction(arguments, folder, settings, results), results))
        return status
    for name in ("details", "html", "png", "markdown"):
        if getattr(arguments, name):
            raise InputError(messages.OfOneRun(option(name), str(folder), len(runs), str(folder / runs[0])))
    results = collect.collect(folder, settings, None)
    redaction = _redaction(arguments, folder, settings, results)
    shown = _hidden(redaction, results)
    if arguments.json:
        print(json.dumps(_hidden(redaction, collect.document(folder, settings, None, results))))
    else:
        verdict = _hidden(redaction, collect.verdict(folder, settings, results))
        table.show(shown, verdict, _hidden(redaction, folder, "folder"), terminal.console())
    _tell(shown)
    return MEASURED


def _redaction(
    arguments: argparse.Namespace, folder: Path, settings: Settings, results: Sequence[NodeResult]
) -> Redaction | None:
    """Return the placeholders for the names of a submission; None without --redact."""
    if not arguments.redact:
        return None
    redaction = Redaction(*settings.nodelist, *(node.name for node in results))
    for node in results:
        if node.result is not None:
            redaction.know_result(node.result, folder)
    return redaction


def _hidden(redaction: Redaction | None, value: Value, key: str = "") -> Value:
    """Return ``value`` with placeholders, unless there is no redaction."""
    return value if redaction is None else redaction.value(value, key)


def _tell(results: Sequence[NodeResult]) -> None:
    """Print what kept nodes from measuring to stderr."""
    from envkit.cluster.slurm import table

    for problem in table.problems(results):
        print(f"envkit: {text(problem)}", file=sys.stderr)
