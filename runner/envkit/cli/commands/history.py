"""``envkit history``: the runs that were recorded, and what they found."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from envkit.analysis import recorded_runs
from envkit.analysis.recorded_runs import Beginning, Entry, RecordedRun, Unread
from envkit.analysis.result import Comparison
from envkit.bench.arms import View
from envkit.bench.study import REFERENCE_PROFILE
from envkit.cli import measuring
from envkit.cli.arguments import add_redact_option, count, moment
from envkit.cli.commands import results_messages as messages
from envkit.cli.parser import Parser
from envkit.common.errors import MEASURED
from envkit.common.folders import short
from envkit.common.printable import harmless
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import terminal
from envkit.report.messages.headings import UNDER_LOAD
from envkit.report.redaction import Redaction
from envkit.stats.verdict import Verdict

# As they are given; the margin of an equivalence is no part of the choice.
VERDICTS = {
    "faster": Verdict.FASTER,
    "slower": Verdict.SLOWER,
    "no-difference": Verdict.EQUIVALENT,
    "no-difference-found": Verdict.NOT_FOUND,
    "not-in-effect": Verdict.NOT_IN_EFFECT,
    "failed": Verdict.FAILED,
    "not-ended": Verdict.NOT_ENDED,
    "too-few-samples": Verdict.TOO_FEW_SAMPLES,
    "one-run-each": Verdict.ONE_RUN_EACH,
    "not-reached": Verdict.NOT_REACHED,
}
COLOURS = {
    Verdict.FASTER: "green", Verdict.SLOWER: "red", Verdict.NOT_IN_EFFECT: "red", Verdict.FAILED: "red",
}  # fmt: skip
SPEEDUP_WIDTH = 19  # of 1.367 (1.261-1.603)
NAME_WIDTH = 17  # leaves room for the longest verdict
MOST_NODES = 4  # of a submission; the others are counted


def add_arguments(parser: Parser) -> None:
    parser.add_argument("folder", metavar="DIR", nargs="?", type=Path, default=measuring.results(),
                        help="folder that holds runs (default: ./results)")  # fmt: skip
    parser.add_argument("--profile", metavar="NAME", help="list only runs that measured this profile")
    parser.add_argument("--engine", metavar="NAME", help="list only runs under this engine")
    parser.add_argument("--verdict", metavar="VERDICT", choices=VERDICTS,
                        help=f"list only runs with this verdict: {', '.join(VERDICTS)}")  # fmt: skip
    parser.add_argument(
        "--since", metavar="DATE", type=moment, help="list only runs since then: 2026-11-01, 12h, 7d or 4w"
    )
    parser.add_argument("--limit", metavar="N", type=count, help="list only the latest N of these runs")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")
    add_redact_option(parser)


def run(arguments: argparse.Namespace) -> int:
    folders = recorded_runs.folders(arguments.folder)
    begun, unread = recorded_runs.beginnings(folders)
    chosen = [beginning for beginning in begun if _is_selected(beginning, arguments)]
    most = None if arguments.json or arguments.verdict else MOST_NODES
    wanted = recorded_runs.entries(chosen, unread, lambda recorded: _has_verdict(recorded, arguments), most)
    entries = list(itertools.islice(wanted, arguments.limit))
    place = arguments.folder
    if arguments.redact:
        entries, unread, place = _redacted(entries, unread, place)
    if arguments.json:
        problems = [{"folder": str(broken.folder), "problem": text(broken.problem)} for broken in unread]
        print(json.dumps({"runs": [entry.to_json() for entry in entries], "unreadable": problems}))
    else:
        _show(entries, unread, place, len(folders), terminal.console())
    return MEASURED


def _redacted(entries: list[Entry], unread: list[Unread], place: Path) -> tuple[list[Entry], list[Unread], Path]:
    redaction = Redaction()
    for recorded in (run for entry in entries for run in entry.runs):
        redaction.know_result(recorded.result, recorded.folder)
    return redaction.value(entries), redaction.value(unread), redaction.value(place, "folder")


def _is_selected(beginning: Beginning, arguments: argparse.Namespace) -> bool:
    return (
        (arguments.profile is None or arguments.profile in [arm.profile for arm in beginning.study.subjects])
        and (arguments.engine is None or arguments.engine in recorded_runs.engines(beginning.study))
        and (arguments.since is None or beginning.started >= arguments.since)
    )


def _has_verdict(run: RecordedRun, arguments: argparse.Namespace) -> bool:
    if arguments.verdict is None:
        return True
    comparisons = recorded_runs.comparisons(run, arguments.profile)
    return any(comparison.verdict == VERDICTS[arguments.verdict] for comparison in comparisons)


def _show(entries: list[Entry], unread: list[Unread], place: Path, number: int, out: Console) -> None:
    if number == 0:
        out.print(Text(text(messages.NoRuns(str(short(place))))), soft_wrap=True)
    elif not entries and len(unread) < number:
        out.print(Text(text(messages.NoSuchRuns(str(short(place)), number))), soft_wrap=True)
    elif entries:
        runs = [run for entry in entries for run in entry.runs]
        longest = max(len(_label(run, arm.name)) for run in runs for arm in run.result.study.subjects)
        names = min(NAME_WIDTH, longest)
        out.print(Text(text(messages.RunsIn(str(short(place))))), soft_wrap=True)
        for entry in entries:
            _entry(entry, names, out)
    for broken in unread:
        name = str(broken.folder if broken.folder == place else broken.folder.name)
        out.print(Text(text(messages.UnreadRun(name, broken.problem)), "yellow"), soft_wrap=True)


def _entry(entry: Entry, names: int, out: Console) -> None:
    """Print the day and a line for each comparison, on each node of a submission; then the time and facts."""
    run, *others = entry.runs[:MOST_NODES]
    study = run.result.study
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(width=names, overflow="fold")
    lines.add_column(width=SPEEDUP_WIDTH)
    lines.add_column(overflow="fold")
    for shown in (run, *others):
        node = shown.folder.name if entry.nodes > 1 else None
        for comparison in shown.result.comparisons:
            colour = COLOURS.get(comparison.verdict, "") if comparison.load is None else ""
            verdict = Text(comparison.words + UNDER_LOAD * (comparison.load is not None), colour)
            lines.add_row(
                _label(shown, comparison.arm), _speedup(comparison), verdict.append(f", {node}" if node else "", "dim")
            )
        if not shown.result.comparisons:
            lines.add_row(_label(shown, study.reference.name), "-", text(messages.NothingComparedWith(node)))
    if entry.nodes > MOST_NODES:
        lines.add_row("", "", text(messages.MoreNodes(entry.nodes - MOST_NODES)))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=10)
    grid.add_column(overflow="fold")
    details = Text(text(_facts(entry)), "dim")
    when = Text(f"{run.started:%Y-%m-%d}\n").append(f"{run.started:%H:%M}", "dim")
    grid.add_row(when, Group(lines, details))
    out.print(grid)


def _facts(entry: Entry) -> Message:
    """Return how a run was measured, what its results are compared with, and how it ended."""
    run = entry.runs[0]
    study = run.result.study
    reference = study.reference.name if study.view is View.IMAGES else study.reference.profile
    ended = dict.fromkeys(recorded.result.ended or text(messages.NotEnded()) for recorded in entry.runs[:MOST_NODES])
    return messages.RunFacts(
        engines=tuple(recorded_runs.engines(study)),
        trained=study.trained,
        blocks=run.blocks,
        ended=tuple(ended),
        folder=entry.folder.name,
        nodes=entry.nodes if entry.nodes > 1 else None,
        reference=reference if study.view is View.IMAGES or reference != REFERENCE_PROFILE else None,
        whole=study.whole.name if study.view is View.SETTINGS else None,
    )


def _label(run: RecordedRun, name: str) -> str:
    """Return one line's name of an arm as it is printed: its profile, and the engine or image if there are several."""
    study = run.result.study
    arm = next(arm for arm in study.arms if arm.name == name)
    where = arm.name if study.view is View.IMAGES else arm.engine if len(recorded_runs.engines(study)) > 1 else ""
    return harmless(f"{arm.profile} in {where}" if where else arm.name)


def _speedup(comparison: Comparison) -> str:
    if comparison.speedup is not None:
        return f"{comparison.speedup.ratio:.3f} ({comparison.speedup.low:.3f}-{comparison.speedup.high:.3f})"
    return "-" if comparison.single_ratio is None else f"{comparison.single_ratio:.3f}"
