"""How much faster does the environment make which kind of training, on which kind of machine? Measured in parts.

Each call measures as many of the gallery's trainings as fit into --for, those first that this machine has the fewest
blocks of. It adds each session to one file that only grows, and the page is made from that file alone. Stop it when you
like: the blocks of an interrupted session are added too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from envkit.bench.study import REFERENCE_PROFILE
from envkit.cli.arguments import count, duration
from envkit.common.errors import FAILED, MEASURED, InputError
from envkit.common.suggestion import nearest
from envkit.engines.base import PROJECT
from envkit.rendering import text_of

from benchmarks import gallery_atlas, gallery_page, gallery_runs, page, script
from benchmarks.errors import ScriptError
from benchmarks.gallery_atlas import ATLAS, Session, Watched
from benchmarks.gallery_runs import BLOCKS, FEWEST_BLOCKS, PROFILES, PYTHON, WATCHING_S, Host, Model

TIME_S = 1800.0


def main() -> int:
    arguments = _parser().parse_args()
    models = gallery_runs.models()
    chosen = _chosen(arguments.model or list(models), models)
    for session in gallery_runs.collect(arguments.records, arguments.results):  # of a call that was killed
        _tell(session)
    status = MEASURED if arguments.page_only else _measure(arguments, chosen)
    sessions = gallery_atlas.read_sessions(arguments.results)
    gallery_page.write(arguments.page, sessions, models)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = script.parser("gallery_map", __doc__, PROJECT / "docs" / "gallery.md", ATLAS)
    parser.add_argument("--for", dest="time", metavar="TIME", type=duration, default=TIME_S,
                        help=f"how long to measure (default: {TIME_S / 60:g}m)")  # fmt: skip
    parser.add_argument("--model", metavar="NAME", action="append",
                        help="measure this training, can be repeated (default: any)")  # fmt: skip
    parser.add_argument("--profile", metavar="NAME", action="append",
                        help="measure this profile, can be repeated (default: those that apply here of "
                        f"{', '.join(PROFILES)})")  # fmt: skip
    parser.add_argument("--blocks", metavar="N", type=count, default=BLOCKS,
                        help=f"the most of a session (default: {BLOCKS})")  # fmt: skip
    parser.add_argument("--python", metavar="PATH", default=PYTHON,
                        help="the trainings' interpreter (default: %(default)s)")  # fmt: skip
    parser.add_argument("--no-watch", action="store_true", help="don't watch trainings for their symptoms first")
    parser.add_argument("--page-only", action="store_true", help="measure nothing: write the page")
    records = PROJECT / "results" / "gallery"
    parser.add_argument("--records", metavar="DIR", type=Path, default=records,
                        help=f"where sessions keep records (default: {records.relative_to(PROJECT)})")  # fmt: skip
    return parser


def _chosen(names: Sequence[str], models: Mapping[str, Model]) -> list[Model]:
    for name in names:
        if name not in models:
            there = ", ".join(models)
            near = nearest(name, models)
            meant = f" (did you mean '{near}'?)" if near else ""
            raise ScriptError(f"--model {name}: there is no such model{meant}; there are: {there}")
    return [models[name] for name in dict.fromkeys(names)]


def _measure(arguments: argparse.Namespace, models: Sequence[Model]) -> int:
    """Measure sessions until the time is used up, and return the exit status: 1 if a training failed."""
    end = time.monotonic() + arguments.time
    profiles = arguments.profile or PROFILES
    if REFERENCE_PROFILE in profiles:
        raise ScriptError(f"--profile {REFERENCE_PROFILE}: is what profiles are compared with; name another")
    gallery_runs.require_python(arguments.python)
    here = gallery_runs.host(profiles, arguments.python, must_apply=bool(arguments.profile))
    for name, reason in here.left_out.items():
        print(f"left out: {name}: {reason}", flush=True)
    commit, status, measured = page.commit(), MEASURED, 0
    working, left = list(models), list(models)
    while left:
        model = _least_measured(left, arguments.results, here)
        left.remove(model)
        part = _part(arguments, model, here, end - time.monotonic())
        if part is None:
            break
        blocks, watched = part
        print(f"{model.name}: {blocks} blocks of {len(here.arms)} arms", flush=True)
        folder = gallery_runs.folder_for(arguments.records, model, commit)
        try:
            ended = gallery_runs.measure(model, folder, here, arguments.python, blocks, watched)
        finally:
            for session in gallery_runs.collect(arguments.records, arguments.results):
                _tell(session)
        measured += 1
        if ended not in (MEASURED, FAILED):
            return ended
        if ended == FAILED:
            status = FAILED
            working.remove(model)
        left = left or list(working)
    if not measured:
        raise ScriptError(f"--for: too short for {FEWEST_BLOCKS} blocks of {model.name}; give --for 10m or longer")
    return status


def _least_measured(models: Sequence[Model], results: Path, here: Host) -> Model:
    sessions = gallery_atlas.read_sessions(results)
    return min(models, key=lambda model: gallery_runs.blocks_here(sessions, model.name, here.machine))


def _part(arguments: argparse.Namespace, model: Model, here: Host, left_s: float) -> tuple[int, Watched | None] | None:
    """Return how many blocks of a training fit, and what was observed of it; None if too few fit."""
    sessions = gallery_atlas.read_sessions(arguments.results)
    watching_s = 0.0 if arguments.no_watch else WATCHING_S
    block_s = gallery_runs.expected_block_s(model, sessions, here)
    if not gallery_runs.fitting_blocks(left_s - watching_s, block_s, arguments.blocks):
        return None
    if arguments.no_watch:
        return gallery_runs.fitting_blocks(left_s, block_s, arguments.blocks), None
    begin = time.monotonic()
    print(f"{model.name}: watching", flush=True)
    watched = _watched(model, arguments.python)
    block_s = gallery_runs.expected_block_s(model, sessions, here, watched)
    left_s -= time.monotonic() - begin
    blocks = gallery_runs.fitting_blocks(left_s, block_s, arguments.blocks)
    return (blocks, watched) if blocks else None


def _watched(model: Model, python: str) -> Watched | None:
    """Return what is observed of a training; None if it can't be watched, which is said."""
    try:
        return gallery_runs.watch(model, python)
    except InputError as error:
        print(text_of(error), flush=True)
        return None


def _tell(session: Session) -> None:
    failure = f"; failed: {session.failure}" if session.failure else ""
    print(f"added: {session.training}, {len(session.blocks)} blocks in {session.seconds:.0f} s{failure}", flush=True)


if __name__ == "__main__":
    sys.exit(script.run("gallery_map", main))
