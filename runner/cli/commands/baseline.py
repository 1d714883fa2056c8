"""``envkit baseline``: save a session's measurement as a file, hold later ones against it, say what differs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from runner import engines
from runner.analysis import baselines
from runner.analysis.baseline_diff import Changes, changes, differences, machine_pairs, obstacles, unequal
from runner.analysis.baselines import Baseline
from runner.bench.plan import Arm
from runner.bench.requirements import choosing, on_gpus
from runner.bench.specification import Specification
from runner.cli import engine_options, measuring, measuring_options
from runner.cli.arguments import count, duration, option, share
from runner.cli.measuring import Invocation
from runner.common.errors import FAILED, INTERRUPTED, MEASURED, InputError
from runner.common.plain_table import plain_table
from runner.engines.base import EngineOptions
from runner.engines.inspect_image import inspect
from runner.profiles import profile
from runner.profiles.environment import clean
from runner.report import baseline_report, terminal
from runner.stats.interval import MIN_BLOCKS
from runner.worker.fashion_mnist import SYNTHETIC
from runner.worker.modes import Options

THRESHOLD = 0.05
# Options of a measurement that a baseline does not fix.
FREE = ("blocks", "budget", "timeout", "data", "keep_env", "force", "allow_unknown", "output")
EXIT_STATUSES = (
    "exit status: 0 done, and with check no regression; 1 a regression, or a worker failed; 2 bad input, or what can't "
    "be compared; 130 interrupted"
)
NO_RATIO = (
    "the reference kernel is other work now (Python, the C library or the kit changed), and there is no ratio to "
    "compare instead, because nothing was measured beside the reference"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=text, epilog=EXIT_STATUSES)
        action.add_argument("--folder", metavar="DIR", type=Path, default=baselines.FOLDER,
                            help="where baselines are kept (default: baselines/)")  # fmt: skip
        action.add_argument("--json", action="store_true", help="print JSON for scripts")
        return action

    save = add("save", "save a run's record as a small file to be committed")
    save.add_argument("name", metavar="NAME", help="what to call it, for example cnn-epyc")
    save.add_argument("--from", dest="record", metavar="DIR", type=Path,
                      help="folder of the run (default: the latest in ./results that can become one)")  # fmt: skip
    save.add_argument("--replace", action="store_true", help="write over a baseline of this name")
    check = add("check", "measure the same again; exit status 1 where speed was lost beyond the threshold")
    check.add_argument("name", metavar="NAME", help="name of a baseline, or its file")
    check.add_argument("--against", metavar="DIR", type=Path, help="take this run's record instead of measuring")
    diff = add("diff", "say what differs between two baselines, beside the change of speed")
    diff.add_argument("old", metavar="A", help="name of a baseline, or its file")
    diff.add_argument("new", metavar="B", help="the other one")
    for action in (check, diff):
        action.add_argument("--threshold", metavar="SHARE", type=share, default=THRESHOLD,
                            help="the loss of speed that is a regression (default: 5%%)")  # fmt: skip
    _add_measuring(check)
    add("list", "list the baselines")


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    engine_options.add(parser)
    group = parser.add_argument_group("measuring")
    group.add_argument("--profile", metavar="FILE", action="append",
                       help="where a profile of the baseline is, if not in envprofiles/")  # fmt: skip
    group.add_argument("--blocks", metavar="N", type=count, help="measure so many (default: as many as it has)")
    group.add_argument("--budget", type=duration, help=argparse.SUPPRESS)  # known, to say what to give instead
    group.add_argument("--timeout", metavar="TIME", type=duration, help="stop a worker that takes longer")
    measuring_options.add_worker_options(group)


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
    out.print(Text(f"file     {path}  (commit it; later: envkit baseline check {saved.name})"), soft_wrap=True)
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
    if arguments.budget is not None:
        raise InputError(
            "--budget can't be given to baseline check, which measures a number of blocks that is fixed before "
            f"({old.blocks}, as many as {old.name} has); give another with --blocks"
        )
    if arguments.blocks is not None and arguments.blocks < MIN_BLOCKS:
        raise InputError(f"--blocks {arguments.blocks}: is too few to compare; give {MIN_BLOCKS} or more")
    if arguments.against is not None:
        for name in ("profile", *FREE, *EngineOptions.names()):
            if getattr(arguments, name) not in (None, False):
                raise InputError(f"{option(name)} means nothing with --against, which measures nothing")
        return _compare(arguments, old, arguments.against)
    asked = _asked(arguments, old)
    _require_same_machine(asked, old)
    how = Invocation(arguments.output, arguments.json)
    status = measuring.run(asked, how, then=lambda folder: _compare(arguments, old, folder))
    if status == INTERRUPTED:
        print(
            f"envkit: and then compare: envkit baseline check {arguments.name} --against that folder", file=sys.stderr
        )
    return status


def _asked(arguments: argparse.Namespace, old: Baseline) -> Specification:
    """A measurement like the baseline's, but for what the user said."""
    plan = old.plan
    given = engine_options.given(arguments).to_json()
    command = old.user_command
    data = arguments.data
    # a user's command brings its data, and a workload may make its own
    if command is None and data is None and (plan["data"] == SYNTHETIC or Path(plan["data"]).is_dir()):
        data = plan["data"]
    return Specification(
        title=f"check-{old.name}",
        arms=tuple(_arms(arguments, old)),
        workload=plan["workload"],
        user_command=command,
        options=Options(**plan.get("options", {})),
        engine_options=EngineOptions(**{**plan["engine_options"], **given}),
        data=data,
        warmup_steps=0 if command else plan["warmup_steps"],
        steps=0 if command else plan["steps"],
        budget_s=measuring_options.BUDGET_S,
        # As many as then, whatever they show: the interval is for a number of blocks that was fixed before.
        blocks=arguments.blocks or old.blocks,
        timeout_s=arguments.timeout or plan["timeout_s"],
        keep_env=tuple(arguments.keep_env or old.document["allowed_variables"]),
        force=arguments.force,
        allow_unknown=arguments.allow_unknown,
    )


def _arms(arguments: argparse.Namespace, old: Baseline) -> list[Arm]:
    files = {Path(name).stem: name for name in arguments.profile or ()}
    planned = [arm["profile"] for arm in old.plan["arms"]]
    for name, file in files.items():
        if name not in planned:
            raise InputError(f"--profile {file}: {old.source} has no profile '{name}'; it has: {', '.join(planned)}")
    for name in planned:
        if name not in (*files, *profile.names(), *profile.local_names()):
            raise InputError(f"{old.source}: its profile '{name}' is not in envprofiles/; give --profile {name}.yaml")
    return [Arm(arm["name"], files.get(arm["profile"], arm["profile"]), arm["engine"]) for arm in old.plan["arms"]]


def _require_same_machine(asked: Specification, old: Baseline) -> None:
    """Refuse another kind of machine before minutes are spent on it."""
    gpus = on_gpus(asked.options, asked.user_command is not None)
    inherited, _ = clean(os.environ, keep=choosing(asked.options))
    for name, engine in engines.get_all(list(old.document["engines"]), asked.engine_options).items():
        pairs = machine_pairs(old.document["engines"][name]["inspection"], inspect(engine, inherited, gpus=gpus))
        _refuse(old, [unequal(pair) for pair in pairs if pair[1] != pair[2]])


def _refuse(old: Baseline, reasons: Sequence[str]) -> None:
    if reasons:
        raise InputError(
            f"{old.source}: can't be compared with what is measured now: {'; '.join(reasons)}; "
            "save a baseline for each such case"
        )


def _compare(arguments: argparse.Namespace, old: Baseline, folder: Path) -> int:
    """Say how the run in ``folder`` compares with the baseline; returns the exit status."""
    new = baselines.from_record(folder, old.name)
    _refuse(old, obstacles(old, new))
    found = changes(old, new, arguments.threshold)
    if found is None:
        _refuse(old, [NO_RATIO])
    _show(arguments, old, new, found, [])
    return FAILED if found is not None and found.regressions else MEASURED


def _diff(arguments: argparse.Namespace) -> int:
    old, new = (baselines.load(name, arguments.folder) for name in (arguments.old, arguments.new))
    reasons = obstacles(old, new)
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
            "regression": bool(found and found.regressions),
            "not_compared": [] if found else list(reasons),
            "differences": [asdict(one) for one in different],
        }
        print(json.dumps(document))
        return
    out = terminal.console()
    baseline_report.heading(old, new, out)
    if found is not None:
        baseline_report.speeds(found, old.reference, arguments.threshold, out, saved=not new.is_under_load)
    else:
        terminal.item(out, "speed", f"not compared: {'; '.join(reasons)}", "bold")
        out.print()
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
