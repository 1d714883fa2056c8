"""``envkit baseline``: save a session's measurement as a file, hold later ones against it, say what differs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from envkit import rendering
from envkit.analysis import baselines
from envkit.analysis.baseline_diff import Changes, changes, differences, obstacles
from envkit.analysis.baselines import Baseline
from envkit.cli import baseline_check, measuring, output_options
from envkit.cli.arguments import refuse_others, share
from envkit.cli.baseline_check import refuse
from envkit.cli.measuring import Invocation
from envkit.cli.parser import Parser
from envkit.common.errors import FAILED, INTERRUPTED, MEASURED
from envkit.common.plain_table import plain_table
from envkit.report import baseline_report, terminal
from envkit.worker.fashion_mnist import SYNTHETIC

THRESHOLD = 0.05
EXIT_STATUSES = (
    "exit status: 0 done, and with check no regression; 1 a regression, or a worker failed; 2 bad input, or what can't "
    "be compared; 130 interrupted"
)
NO_RATIO = (
    "the reference kernel is other work now (Python, the C library or the kit changed), and there is no ratio to "
    "compare instead, because nothing was measured beside the reference"
)


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, text: str) -> Parser:
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=EXIT_STATUSES)
        action.add_argument("--folder", metavar="DIR", type=Path, default=baselines.FOLDER,
                            help="keep baselines in DIR (default: baselines/)")  # fmt: skip
        return action

    save = add("save", "save a run's record as a small file to be committed")
    save.add_argument("name", metavar="NAME", help="name of the new baseline, e.g. cnn-epyc")
    save.add_argument("--from", dest="record", metavar="DIR", type=Path,
                      help="save the run in this folder (default: the latest in ./results)")  # fmt: skip
    save.add_argument("--replace", action="store_true", help="overwrite a baseline of this name")
    check = add("check", "measure the same again; exit status 1 if more speed was lost than --threshold allows")
    check.add_argument("name", metavar="NAME", help="name of a baseline, or its file")
    check.add_argument("--against", metavar="DIR", type=Path, help="compare with this run instead of measuring")
    diff = add("diff", "say what differs between two baselines, and how speed changed")
    diff.add_argument("old", metavar="A", help="name of a baseline, or its file")
    diff.add_argument("new", metavar="B", help="name of the other baseline, or its file")
    for action in (check, diff):
        action.add_argument("--threshold", metavar="SHARE", type=share, default=THRESHOLD,
                            help="call a larger loss of speed a regression (default: 5%%)")  # fmt: skip
    baseline_check.add_arguments(check)
    for action in (save, diff, add("list", "list the baselines")):
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
    text = f"{saved.name}: {', '.join(saved.arms)}, {saved.blocks} blocks, measured {baseline_report.when(saved)}"
    terminal.item(out, "baseline", text)
    out.print(Text(f"run      {saved.source}"), soft_wrap=True)
    if saved.plan["data"] == SYNTHETIC:
        terminal.item(out, "note", "measured with synthetic data, and only comparable with the same")
    if saved.is_under_load:
        terminal.item(out, "note", baseline_report.under_load(saved), "bold yellow")
    out.print(Text(f"file     {path}  (commit it; later: envkit baseline check {saved.name} PROFILE)"), soft_wrap=True)
    return MEASURED


def _list(arguments: argparse.Namespace) -> int:
    found = [baselines.load(name, arguments.folder) for name in baselines.names(arguments.folder)]
    out = terminal.console()
    if arguments.json:
        print(json.dumps([_described(one) for one in found]))
    elif not found:
        hint = "save one with: envkit baseline save NAME --from DIR"
        out.print(Text(f"no baselines in {arguments.folder}; {hint}"), soft_wrap=True)
    else:
        table = plain_table(("baseline", "measured", "blocks", "profiles", "machine"), fold=True)
        for one in found:
            machine = one.engine(one.reference)["inspection"]
            cpus = f"{machine['fingerprint']['cpu_model']}, {machine['facts']['usable_cpus']} CPUs"
            name = Path(one.source).stem
            table.add_row(name, baseline_report.when(one), str(one.blocks), ", ".join(one.arms), cpus)
        out.print(table)
    return MEASURED


def _check(arguments: argparse.Namespace) -> int:
    old = baselines.load(arguments.name, arguments.folder)
    if arguments.against is not None:
        why = "means nothing with --against, which measures nothing"
        refuse_others(arguments, ("command", "action", "name", "folder", "json", "quiet", "against", "threshold"), why)
        return _compare(arguments, old, arguments.against)
    asked = baseline_check.asked(arguments, old)
    how = Invocation(arguments.output, arguments.json, output_options.is_quiet(arguments))
    status = measuring.run(
        asked, how, lambda folder: _compare(arguments, old, folder), partial(baseline_check.require_same_run, old)
    )
    if status == INTERRUPTED:
        print(
            f"envkit: and then compare: envkit baseline check {arguments.name} --against that folder", file=sys.stderr
        )
    return status


def _compare(arguments: argparse.Namespace, old: Baseline, folder: Path) -> int:
    """Say how the run in ``folder`` compares with the baseline; returns the exit status."""
    new = baselines.from_record(folder, old.name)
    refuse(old, obstacles(old, new))
    found = changes(old, new, arguments.threshold)
    if found is None:
        refuse(old, [NO_RATIO])
    _show(arguments, old, new, found, [])
    return FAILED if found is not None and found.regressions else MEASURED


def _diff(arguments: argparse.Namespace) -> int:
    old, new = (baselines.load(name, arguments.folder) for name in (arguments.old, arguments.new))
    reasons = [rendering.text(one) for one in obstacles(old, new)]
    found = None if reasons else changes(old, new, arguments.threshold)
    _show(arguments, old, new, found, reasons or [NO_RATIO])
    return MEASURED


def _show(
    arguments: argparse.Namespace, old: Baseline, new: Baseline, found: Changes | None, reasons: Sequence[str]
) -> None:
    """``reasons`` are why there are no changes of speed, where there are none."""
    different = differences(old, new)
    if arguments.json:
        document = {
            "then": _described(old),
            "now": _described(new),
            "threshold": arguments.threshold,
            "speed": asdict(found) if found else None,
            "verdicts": [one.to_json() for one in baseline_report.verdicts(found)] if found else [],
            "regression": bool(found and found.regressions),
            "not_compared": [] if found else list(reasons),
            "differences": [asdict(one) for one in different],
        }
        print(json.dumps(document))
        return
    out = terminal.console()
    if found is None:
        out.print(Text(f"NOT COMPARED  {'; '.join(reasons)}", "bold"))
        out.print()
    baseline_report.show(old, new, found, arguments.threshold, out)
    baseline_report.environments(different, out)


def _described(one: Baseline) -> dict[str, Any]:
    """What a script needs to know of a session."""
    return {
        "source": one.source,
        "name": one.name,
        "measured": one.document["measured"],
        "blocks": one.blocks,
        "blocks_with_interference": one.disturbed,
        "is_under_load": one.is_under_load,
        "arms": one.arms,
        "skipped_steps": one.skipped_steps,
        "digest": one.document["digest"],
    }
