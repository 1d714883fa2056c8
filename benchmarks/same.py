"""The baseline against itself, in pieces: whoever finds a difference there is wrong; this counts how often.

Each call measures some more blocks with ``envkit bench``: the baseline beside copies of itself, in fresh processes. It
adds their times to one file that only grows, and the page is made from that file alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from envkit.bench.run import read as read_run
from envkit.cli.arguments import counts
from envkit.profiles.environment import Environment

from benchmarks import growing, same_page, script
from benchmarks.errors import ScriptError
from benchmarks.recorded import session_of
from benchmarks.results import append_line
from benchmarks.short_runs import Session

TIME_S, ARMS = 600.0, (2, 7)
COPY = """name: {name}
title: Nothing set
why:
  reason: It is a copy of the baseline. Every difference between the two is noise.
  source: https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html
"""


def main() -> int:
    parser = growing.bench_parser("same", __doc__, TIME_S)
    parser.add_argument("--arms", metavar="N,…", type=counts(2), default=ARMS,
                        help="how many arms a run has, the baseline and its copies (default: 2,7)")  # fmt: skip
    arguments = growing.parse(parser)
    add = partial(_add, results=arguments.results)
    return growing.run(
        arguments, "arms", lambda: _measure(arguments, add), add, lambda: same_page.parts(read(arguments.results))
    )


def _measure(arguments: argparse.Namespace, add: Callable[[Path, str], None]) -> None:
    """Measure one run for each number of arms."""
    for arms in arguments.arms:
        copies = list(_copies(arguments.records / "profiles", arms - 1))
        growing.bench(arguments, f"{arms}-arms", copies, arguments.time / len(arguments.arms), add)


def _copies(folder: Path, number: int) -> Iterator[Path]:
    """Write so many profiles that set nothing, each of another name: a run has one arm for each name."""
    folder.mkdir(parents=True, exist_ok=True)
    for copy in range(1, number + 1):
        path = folder / f"copy-{copy}.yaml"
        path.write_text(COPY.format(name=path.stem))
        yield path


def _add(folder: Path, commit: str, results: Path) -> None:
    """Add the blocks of a run, unless they are there or it has none. Raise ScriptError where its arms differ."""
    session = session_of(folder, commit)
    environments = read_run(folder).beginning.environments.values()
    documents = [Environment.from_json(document).to_json() for document in environments]
    settings = [{**environment, "profile": "", "title": ""} for environment in documents]
    if any(other != settings[0] for other in settings):
        raise ScriptError(f"{folder}: does not measure the baseline against itself")
    if session.blocks and all(other.began != session.began for other in read(results)):
        append_line(results, session.to_json())
        print(f"added: {session.arms} arms, {len(session.blocks)} blocks, {folder}", flush=True)


def read(path: Path) -> list[Session]:
    """Return the runs of a file, as ``growing.read`` does."""
    return growing.read(path, Session.from_json)


if __name__ == "__main__":
    sys.exit(script.run("same", main))
