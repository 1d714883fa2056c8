"""The baseline against itself, in pieces: whoever finds a difference there is wrong; this counts how often.

Each call measures some more blocks with ``envkit bench``: the baseline beside copies of itself, in fresh processes. It
adds their times to one file that only grows, and the page is made from that file alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from envkit.bench import record
from envkit.cli.arguments import counts, duration
from envkit.common.errors import MISFITS, InputError
from envkit.engines.base import PROJECT
from envkit.profiles.environment import Environment

from benchmarks import page, same_page, script
from benchmarks.errors import ScriptError
from benchmarks.recorded import RawSamples, raw_samples
from benchmarks.results import FOLDER
from benchmarks.short_runs import Session

TIME_S, ARMS = 600.0, (2, 7)
# No interval becomes so narrow, so a run measures until its time is used up.
NEVER_PRECISE = "0.0001"
COPY = """name: {name}
title: Nothing set
why:
  reason: It is a copy of the baseline. Every difference between the two is noise.
  source: https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html
"""


def main() -> int:
    made = parser("same", __doc__, TIME_S)
    made.add_argument("--arms", metavar="N,…", type=counts(2), default=ARMS,
                      help="arms of a run, the baseline and copies; runs share the time (default: 2,7)")  # fmt: skip
    arguments = parse(made)
    _collect(arguments)  # of a call that was killed
    if arguments.add is None:
        _measure(arguments)
    for folder in arguments.add or ():
        _add(folder, arguments.commit, arguments.results)
    page.write(arguments.page, same_page.parts(read(arguments.results)))
    return 0


def parser(name: str, description: str | None, time_s: float) -> argparse.ArgumentParser:
    """Return the options of a script whose calls each measure for ``time_s`` seconds and add to one file."""
    data = page.PAGES / f"{name}.jsonl"
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    made.add_argument("--for", dest="time", metavar="TIME", type=duration, default=time_s,
                      help=f"how long to measure (default: {time_s:g}s)")  # fmt: skip
    made.add_argument("--add", metavar="DIR", type=Path, nargs="*",
                      help="measure nothing: add the runs in these folders, and write the page")  # fmt: skip
    made.add_argument("--commit", metavar="HASH", help="the commit that --add's runs were measured with")
    made.add_argument("--results", metavar="FILE", type=Path, default=data,
                      help=f"all runs; it only grows (default: {data.relative_to(PROJECT)})")  # fmt: skip
    made.add_argument("--records", metavar="DIR", type=Path, default=FOLDER / name,
                      help="where the runs keep their records (default: %(default)s)")  # fmt: skip
    made.add_argument("--page", metavar="FILE", type=Path, default=data.with_suffix(".md"), help="the page to write")
    made.add_argument("--steps", metavar="N", help="timed steps per sample (default: by the pace)")
    made.add_argument("--data", metavar="DIR", help="folder with Fashion-MNIST's four files, or 'synthetic'")
    made.add_argument("--python", metavar="PATH", help="the workers' interpreter (default: this one)")
    return made


def parse(made: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the command line's options. Raise ScriptError for a run to add whose commit is missing."""
    arguments = made.parse_args()
    if arguments.add and not arguments.commit:
        raise ScriptError("--add: needs --commit HASH, as a record does not say the commit")
    return arguments


def _measure(arguments: argparse.Namespace) -> None:
    """Measure one run for each number of arms. The blocks of an interrupted run are added, too."""
    commit = page.commit()
    for arms in arguments.arms:
        folder = arguments.records / f"{datetime.now():%Y%m%d-%H%M%S-%f}-{arms}-arms-{commit}"
        copies = list(_copies(arguments.records / "profiles", arms - 1))
        options = ["--budget", f"{arguments.time / len(arguments.arms):g}s", "--half-width", NEVER_PRECISE]
        options += script.option_words(arguments, "steps", "python", "data")
        try:
            script.runner("bench", *copies, *options, "--output", folder, purpose=str(folder))
        finally:
            _collect(arguments)


def _collect(arguments: argparse.Namespace) -> None:
    collect(arguments.records, "*-arms-*", lambda folder, commit: _add(folder, commit, arguments.results))


def _copies(folder: Path, number: int) -> Iterator[Path]:
    """Write so many profiles that set nothing, each of another name: a run has one arm for each name."""
    folder.mkdir(parents=True, exist_ok=True)
    for copy in range(1, number + 1):
        path = folder / f"copy-{copy}.yaml"
        path.write_text(COPY.format(name=path.stem))
        yield path


def collect(records: Path, pattern: str, add: Callable[[Path, str], None]) -> None:
    """Add all runs in ``records`` whose folders match ``pattern``, each with the commit that the name ends in."""
    for folder in sorted(records.glob(pattern)):
        try:
            record.require_idle(folder)
        except InputError:  # it still goes on, and its own process adds it
            continue
        if record.is_begun(folder):
            add(folder, folder.name.rpartition("-")[2])


def _add(folder: Path, commit: str, results: Path) -> None:
    """Add the blocks of a run, unless they are there or it has none. Raise ScriptError where its arms differ."""
    raw = raw_samples(folder)
    environments = [Environment.from_json(document).to_json() for document in raw.environments.values()]
    settings = [{**environment, "profile": "", "title": ""} for environment in environments]
    if any(other != settings[0] for other in settings):
        raise ScriptError(f"{folder}: does not measure the baseline against itself")
    if raw.blocks and all(session.began != raw.began for session in read(results)):
        session = session_of(raw, commit)
        append(results, session)
        print(f"added: {session.arms} arms, {len(session.blocks)} blocks, {folder}", flush=True)


def session_of(raw: RawSamples, commit: str) -> Session:
    """Return the line of a run that was measured with ``commit``."""
    return Session(
        raw.began, commit, raw.cpu, raw.usable_cpus, raw.kernel, raw.arms, raw.steps, raw.blocks, raw.disturbed
    )


def read(path: Path) -> list[Session]:
    """Return the sessions of a file, none if it does not exist. A last line that is not complete is left out.

    Raise ScriptError for another line of a wrong form.
    """
    sessions: list[Session] = []
    content = path.read_bytes() if path.exists() else b""
    for number, line in enumerate(content.rpartition(b"\n")[0].splitlines(), start=1):
        try:
            sessions.append(Session.from_json(json.loads(line)))
        except MISFITS as error:
            raise ScriptError(f"{path}: line {number} is not a run of benchmarks.same: {error}") from error
    return sessions


def append(path: Path, session: Session) -> None:
    """Write one more line. Half a line that a kill has left behind is removed; complete ones are never touched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        file.seek(0)
        content = file.read()
        if (complete := content.rfind(b"\n") + 1) < len(content):
            file.truncate(complete)
        file.write(json.dumps(session.to_json(), separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(script.run("same", main))
