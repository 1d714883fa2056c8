"""``envkit baseline``: save a session's measurement as a file, hold later ones against it, say what differs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.text import Text

from envkit import rendering
from envkit.analysis import baselines
from envkit.analysis.baseline_diff import Changes, changes, differences, obstacles
from envkit.analysis.baselines import Baseline
from envkit.cli import baseline_check, measuring
from envkit.cli.arguments import is_quiet, refuse_others, share
from envkit.cli.baseline_check import refuse
from envkit.cli.commands import results_messages as messages
from envkit.cli.commands.help_messages import BASELINE
from envkit.cli.measuring import Invocation
from envkit.cli.parser import Parser
from envkit.common.errors import FAILED, INTERRUPTED, MEASURED
from envkit.common.plain_table import plain_table
from envkit.messages import Message
from envkit.rendering import text
from envkit.report import baseline_report, terminal
from envkit.worker.fashion_mnist import SYNTHETIC

THRESHOLD = 0.05


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str) -> Parser:
        does = BASELINE[name]
        description = f"{does[0].upper()}{does[1:]}."
        action = actions.add_parser(name, help=does, description=description, epilog=BASELINE["statuses"])
        action.add_argument("--folder", metavar="DIR", type=Path, default=baselines.FOLDER,
                            help="keep baselines in DIR (default: baselines/)")  # fmt: skip
        return action

    save = add("save")
    save.add_argument("name", metavar="NAME", help="name of the new baseline, e.g. cnn-epyc")
    save.add_argument("--from", dest="record", metavar="DIR", type=Path,
                      help="save the run in this folder (default: the latest in ./results)")  # fmt: skip
    save.add_argument("--replace", action="store_true", help="overwrite a baseline of this name")
    check = add("check")
    check.add_argument("name", metavar="NAME", help="name of a baseline, or its file")
    check.add_argument("--against", metavar="DIR", type=Path, help="compare with this run instead of measuring")
    diff = add("diff")
    diff.add_argument("old", metavar="A", help="name of a baseline, or its file")
    diff.add_argument("new", metavar="B", help="name of the other baseline, or its file")
    for action in (check, diff):
        action.add_argument("--threshold", metavar="SHARE", type=share, default=THRESHOLD,
                            help="call a larger loss of speed a regression (default: 5%%)")  # fmt: skip
    baseline_check.add_arguments(check)
    for action in (save, diff, add("list")):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    actions = {"save": _save, "check": _check, "diff": _diff, "list": _list}
    return actions[arguments.action](arguments)


def _save(arguments: argparse.Namespace) -> int:
    path = baselines.path_of(arguments.name, arguments.folder)
    if arguments.record is None:
        saved = baselines.latest(measuring.results(), arguments.name)
    else:
        saved = baselines.from_record(arguments.record, arguments.name)
    baselines.write(saved, path, arguments.replace)
    if arguments.json:
        print(json.dumps({**_described(saved), "source": str(path), "record": saved.source}))
        return MEASURED
    out = terminal.console()
    when = baseline_report.when(saved)
    terminal.item(out, "baseline", messages.BaselineSaved(saved.name, tuple(saved.arms), saved.blocks, when))
    terminal.item(out, "run", saved.source, whole=True)
    if saved.study["data"] == SYNTHETIC:
        terminal.item(out, "note", messages.BaselineIsSynthetic())
    if saved.is_under_load:
        terminal.item(out, "note", baseline_report.under_load(saved), "bold yellow")
    terminal.item(out, "file", messages.BaselineFile(str(path), saved.name), whole=True)
    return MEASURED


def _list(arguments: argparse.Namespace) -> int:
    kept = [baselines.load(name, arguments.folder) for name in baselines.names(arguments.folder)]
    out = terminal.console()
    if arguments.json:
        print(json.dumps([_described(baseline) for baseline in kept]))
    elif not kept:
        out.print(Text(text(messages.NoBaselines(str(arguments.folder)))), soft_wrap=True)
    else:
        table = plain_table(("baseline", "measured", "blocks", "profiles", "machine"), fold=True)
        for baseline in kept:
            machine = baseline.engine(baseline.reference)["inspection"]
            cpus = f"{machine['fingerprint']['cpu_model']}, {machine['facts']['usable_cpus']} CPUs"
            name = Path(baseline.source).stem
            table.add_row(name, baseline_report.when(baseline), str(baseline.blocks), ", ".join(baseline.arms), cpus)
        out.print(table)
    return MEASURED


def _check(arguments: argparse.Namespace) -> int:
    old = baselines.load(arguments.name, arguments.folder)
    if arguments.against is not None:
        allowed = ("command", "action", "name", "folder", "json", "quiet", "against", "threshold")
        refuse_others(arguments, allowed, "--against")
        return _compare(arguments, old, arguments.against)
    study = baseline_check.study(arguments, old)
    invocation = Invocation(arguments.output, arguments.json, is_quiet(arguments))
    status = measuring.run(
        study,
        invocation,
        lambda folder: _compare(arguments, old, folder),
        partial(baseline_check.require_same_run, old),
    )
    if status == INTERRUPTED:
        print(f"envkit: {text(messages.ThenCompare(arguments.name))}", file=sys.stderr)
    return status


def _compare(arguments: argparse.Namespace, old: Baseline, folder: Path) -> int:
    """Print how the run in ``folder`` compares with the baseline. Return the exit status."""
    new = baselines.from_record(folder, old.name)
    refuse(old, obstacles(old, new))
    speed = changes(old, new, arguments.threshold)
    if speed is None:
        refuse(old, [messages.NoRatio()])
    _show(arguments, old, new, speed, [])
    return FAILED if speed is not None and speed.regressions else MEASURED


def _diff(arguments: argparse.Namespace) -> int:
    old, new = (baselines.load(name, arguments.folder) for name in (arguments.old, arguments.new))
    reasons = obstacles(old, new)
    speed = None if reasons else changes(old, new, arguments.threshold)
    _show(arguments, old, new, speed, reasons or [messages.NoRatio()])
    return MEASURED


def _show(
    arguments: argparse.Namespace, old: Baseline, new: Baseline, speed: Changes | None, reasons: Sequence[Message]
) -> None:
    """``reasons`` are why there are no changes of speed, where there are none."""
    different = differences(old, new)
    if arguments.json:
        document = {
            "then": _described(old),
            "now": _described(new),
            "threshold": arguments.threshold,
            "speed": asdict(speed) if speed else None,
            "verdicts": [verdict.to_json() for verdict in baseline_report.verdicts(speed)] if speed else [],
            "regression": bool(speed and speed.regressions),
            "not_compared": [] if speed else [rendering.text(reason) for reason in reasons],
            "differences": [asdict(difference) for difference in different],
        }
        print(json.dumps(document))
        return
    out = terminal.console()
    if speed is None:
        out.print(Text(f"NOT COMPARED  {'; '.join(map(rendering.text, reasons))}", "bold"))
        out.print()
    baseline_report.show(old, new, speed, arguments.threshold, out)
    baseline_report.environments(different, out)


def _described(baseline: Baseline) -> dict[str, object]:
    """Return what a script needs to know of a session."""
    return {
        "source": baseline.source,
        "name": baseline.name,
        "measured": baseline.document["measured"],
        "blocks": baseline.blocks,
        "blocks_with_interference": baseline.disturbed,
        "is_under_load": baseline.is_under_load,
        "arms": baseline.arms,
        "skipped_steps": baseline.skipped_steps,
        "digest": baseline.document["digest"],
    }
