"""What is the environment worth to which kind of training? Every model of the gallery under several profiles.

Each model is one interleaved run of `envkit bench`, whose record stays. A model that has a whole one is not measured
again, and one that was interrupted or failed is gone on with: stop it when you like, and give the same command again.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.bench import record
from envkit.bench.arms import Arm
from envkit.bench.study import REFERENCE_PROFILE, StoppingRule, Study
from envkit.cli import measuring
from envkit.cli.arguments import count
from envkit.cli.measuring import Invocation
from envkit.cli.measuring_options import BUDGET_S, against_baseline
from envkit.common.errors import FAILED, MEASURED
from envkit.common.suggestion import nearest
from envkit.engines.base import PROJECT
from envkit.rendering import text
from envkit.report import verdict

from benchmarks import gallery_heatmap, gallery_page, gallery_runs, interleaved, page, recorded, script
from benchmarks.errors import ScriptError
from benchmarks.gallery_runs import BLOCKS, PROFILES, Model, Run


def main() -> int:
    arguments = _parser().parse_args()
    models = gallery_runs.models()
    chosen = _chosen(arguments.model or list(models), models)
    arms = against_baseline(arguments.profile or list(PROFILES), "local")
    if len(arms) == 1:
        raise ScriptError(f"--profile {REFERENCE_PROFILE}: is what profiles are compared with; name another")
    interleaved.require_blocks(arguments.blocks, len(arms) - 1)
    runs = gallery_runs.runs(arguments.results, models)
    for run in runs.values():
        _require_same(run, arms, arguments.blocks)
    missing = [model for model in chosen if model.name not in runs or not runs[model.name].is_whole]
    if missing and not arguments.page_only:
        gallery_runs.require_python()
        for number, model in enumerate(missing, start=1):
            print(f"{model.name} ({number} of {len(missing)})", flush=True)
            status = _measure(model, arguments.results / model.name, arms, arguments.blocks)
            if status not in (MEASURED, FAILED):
                return status
        runs = gallery_runs.runs(arguments.results, models)
    return _write(arguments.page, arguments.results, runs, models, [arm.name for arm in arms[1:]])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery_map", description=__doc__)
    parser.add_argument("--model", metavar="NAME", action="append",
                        help="measure this one, can be repeated (default: all that have no whole record)")  # fmt: skip
    parser.add_argument("--profile", metavar="NAME", action="append",
                        help=f"compare this one, can be repeated (default: {', '.join(PROFILES)})")  # fmt: skip
    parser.add_argument("--blocks", metavar="N", type=count, default=BLOCKS, help=f"of each run (default: {BLOCKS})")
    parser.add_argument("--page-only", action="store_true", help="measure nothing: write the page of what there is")
    results, written = PROJECT / "results" / "gallery", PROJECT / "docs" / "gallery.md"
    parser.add_argument("--results", metavar="DIR", type=Path, default=results,
                        help="has a folder for the run of each model; goes on with them "
                        f"(default: {results.relative_to(PROJECT)})")  # fmt: skip
    parser.add_argument("--page", metavar="FILE", type=Path, default=written,
                        help=f"the page to write at the end (default: {written.relative_to(PROJECT)})")  # fmt: skip
    return parser


def _chosen(names: Sequence[str], models: Mapping[str, Model]) -> list[Model]:
    for name in names:
        if name not in models:
            there = ", ".join(models)
            near = nearest(name, models)
            meant = f" (did you mean '{near}'?)" if near else ""
            raise ScriptError(f"--model {name}: there is no such model{meant}; there are: {there}")
    return [models[name] for name in dict.fromkeys(names)]


def _require_same(run: Run, arms: Sequence[Arm], blocks: int) -> None:
    """Raise InputError for a run that was begun with other settings than these."""
    study, wanted = run.result.study, run.model.command
    command = study.user_command
    pairs = {
        "profiles": (_names(study.compared), _names(arms[1:])),
        "blocks": (study.stopping.blocks, blocks),
        "command": (command and shlex.join(command.argv), shlex.join(wanted.argv)),
    }
    recorded.require_same(run.folder, pairs, "--results")


def _names(arms: Sequence[Arm]) -> str:
    return ", ".join(sorted(arm.name for arm in arms))


def _measure(model: Model, folder: Path, arms: Sequence[Arm], blocks: int) -> int:
    """Measure a model, or go on; returns the exit status. What failed is in its record."""
    how = Invocation(output=folder, resumed_by=None)  # this script goes on with it

    def tell(folder: Path) -> int:
        run = gallery_runs.runs(folder.parent, {model.name: model})[model.name]
        print(f"{model.name}: {text(verdict.headline(run.result).text)}", flush=True)
        return MEASURED

    if record.is_begun(folder):
        return measuring.resume(folder, how, tell)
    study = Study(
        title=model.name,
        stopping=StoppingRule(BUDGET_S, blocks, open_ended=True),
        workload=model.name,
        user_command=model.command,
    ).with_arms(arms)
    return measuring.run(study, how, tell)


def _write(
    path: Path, results: Path, runs: Mapping[str, Run], models: Mapping[str, Model], profiles: Sequence[str]
) -> int:
    """The page of what there is, and its picture; returns the exit status."""
    complete = gallery_page.ordered([run for run in runs.values() if run.is_whole])
    failed = [run for run in runs.values() if run.failure]
    listed = {run.model.name for run in (*complete, *failed)}
    unmeasured = [model for name, model in models.items() if name not in listed]
    if not complete and failed:
        for run in failed:
            print(f"gallery_map: {run.model.name}: {run.failure}", file=sys.stderr)
        return FAILED
    if not complete:
        raise ScriptError(f"{results}: has no whole record of a model yet; make some with: make gallery")
    page.write(path, gallery_page.page_parts(complete, failed, unmeasured, profiles, path.stem))
    recorded.save(path.with_suffix(""), gallery_heatmap.drawn(complete, profiles))
    return FAILED if failed else MEASURED


if __name__ == "__main__":
    sys.exit(script.run("gallery_map", main))
