"""Files of JSON lines that only grow: each call of a benchmark adds a line, from which the page is made."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from envkit.bench import record
from envkit.cli.arguments import duration
from envkit.common.errors import MISFITS, InputError

from benchmarks import page, script
from benchmarks.errors import ScriptError
from benchmarks.results import FOLDER, complete_lines

# No interval becomes so narrow, so a run measures until its time is used up.
NEVER_PRECISE = "0.0001"
Parsed = TypeVar("Parsed")


def parser(name: str, description: str | None, time_s: float) -> argparse.ArgumentParser:
    """Return the options that all have. ``time_s`` is how long a call measures by default (seconds)."""
    program, data = name.replace("-", "_"), page.PAGES / f"{name}.jsonl"
    made = script.parser(program, description, data.with_suffix(".md"), data)
    made.add_argument("--for", dest="time", metavar="TIME", type=duration, default=time_s,
                      help=f"how long to measure (default: {time_s:g}s)")  # fmt: skip
    made.add_argument("--add", metavar="DIR", type=Path, nargs="*",
                      help="measure nothing: add the runs in these folders, and write the page")  # fmt: skip
    made.add_argument("--commit", metavar="HASH", help="the commit that --add's runs were measured with")
    return made


def parse(made: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options of this call. Raise ScriptError where ``--add`` lacks the commit."""
    arguments = made.parse_args()
    if arguments.add and not arguments.commit:
        raise ScriptError("--add: needs --commit HASH, as a record does not say the commit")
    return arguments


def bench_parser(name: str, description: str | None, time_s: float) -> argparse.ArgumentParser:
    """Return the options of a benchmark whose calls run ``envkit bench``: these of all, and how it measures."""
    made = parser(name, description, time_s)
    made.add_argument("--records", metavar="DIR", type=Path, default=FOLDER / name,
                      help="where the runs keep their records (default: %(default)s)")  # fmt: skip
    made.add_argument("--steps", metavar="N", help="timed steps per sample (default: by the pace)")
    script.add_training_options(made)
    return made


def bench(
    arguments: argparse.Namespace,
    label: str,
    words: Sequence[str | Path],
    time_s: float,
    add: Callable[[Path, str], None],
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run ``envkit bench`` for ``time_s`` seconds, and add the blocks, those of an interrupted run too.

    ``words`` are its profiles and further options. The record's folder has ``label`` and the commit in its name.
    """
    folder = arguments.records / f"{datetime.now():%Y%m%d-%H%M%S-%f}-{label}-{page.commit()}"
    options = ["--budget", f"{time_s:g}s", "--half-width", NEVER_PRECISE, "--keep-arms"]
    options += script.option_words(arguments, "steps", "python", "data")
    try:
        script.runner("bench", *words, *options, "--output", folder, purpose=str(folder), variables=variables)
    finally:
        collect([*arguments.records.glob(f"*-{label}-*")], add)


def run(
    arguments: argparse.Namespace,
    label: str,
    measure: Callable[[], None],
    add: Callable[[Path, str], None],
    parts: Callable[[], list[str]],
) -> int:
    """Add what a killed call has left, measure or add the folders of ``--add``, and write the page of all.

    Records have ``label`` in the names of their folders, as ``bench`` gives them. Return the exit status.
    """
    collect([*arguments.records.glob(f"*-{label}-*")], add)
    if arguments.add is None:
        measure()
    for folder in arguments.add or ():
        add(folder, arguments.commit)
    page.write(arguments.page, parts())
    return 0


class Began(Protocol):
    """A line of such a file: when a call began (seconds since 1970), and where it measured."""

    @property
    def began(self) -> float: ...
    @property
    def host(self) -> str: ...


def opening(title: str, question: str, measured: Sequence[Began], target: str) -> str:
    """Return the beginning of a page of these lines, which ``make target`` adds to. There may be none yet."""
    if not measured:
        return f"# {title}\n\n{question}\n\nNothing is measured yet."
    times, hosts = [{"time": line.began} for line in measured], sorted({line.host for line in measured})
    return page.heading(title, question, times, "; ".join(hosts), f"make {target}")


def collect(folders: list[Path], add: Callable[[Path, str], None]) -> None:
    """Call ``add`` for each run that began and is not measured any more. A folder's name ends in the commit."""
    for folder in sorted(folders):
        try:
            record.require_idle(folder)
        except InputError:  # its own process adds it
            continue
        if record.is_begun(folder):
            add(folder, folder.name.rpartition("-")[2])


def read(path: Path, parse_line: Callable[[Mapping[str, object]], Parsed]) -> list[Parsed]:
    """Return the lines of a file, none if it does not exist. A last line that is not complete is left out.

    Raise ScriptError for another line of a wrong form.
    """
    lines: list[Parsed] = []
    for number, line in enumerate(complete_lines(path), start=1):
        try:
            lines.append(parse_line(json.loads(line)))
        except MISFITS as error:
            raise ScriptError(f"{path}: line {number} is not a run of this benchmark: {error}") from error
    return lines
