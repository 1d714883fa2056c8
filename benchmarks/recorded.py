"""Pages that are written from the record of a run: which run, whether it came to its end, the page and its picture."""

from __future__ import annotations

import argparse
import html
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from envkit.analysis.engine_facts import cpu_name
from envkit.analysis.noise import disturbed_arms
from envkit.analysis.result import Result, conclude
from envkit.bench import record
from envkit.bench.decide import ENDED
from envkit.bench.record import Event
from envkit.bench.run import Run, read
from envkit.cli import measuring
from envkit.common import atomic
from envkit.common.folders import quoted
from envkit.rendering import text
from envkit.report import pictures
from envkit.report.parts import Row
from envkit.report.pictures import Picture, style
from envkit.worker.fashion_mnist import SYNTHETIC
from envkit.worker.workloads import GENERATED

from benchmarks import page, script
from benchmarks.errors import ScriptError
from benchmarks.short_runs import Session

# Significant digits of a time in raw samples.
DIGITS = 5
# For an SVG that is a file of its own; a page of the kit has the same in its style sheet.
THEMES = {
    "light": {name: colour for colour, name in style.VARIABLES.items()},
    "dark": {
        "ink": "#e8e8e6", "soft": "#a6a6a3", "faint": "#4a4a4a", "band": "#383838", "reference": "#b5b5b5",
        "better": "#2cc295", "worse": "#f08133", "neither": "#56b4e9", "interference": "#e69f00", "paper": "#171717",
        "good-text": "#4fd6ae", "bad-text": "#ff9d57",
    },
}  # fmt: skip
NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def parser(name: str, description: str | None, without: str = "the latest") -> argparse.ArgumentParser:
    """Of a script that takes a run's folder, and ``--page``; ``without`` a folder it takes that one."""
    made = script.page_parser(name, description)
    made.add_argument("folder", metavar="DIR", type=Path, nargs="?", help=f"the run's folder (default: {without})")
    return made


def latest(suffix: str, subject: str, target: str) -> Path:
    """The latest folder of results whose name ends in ``suffix``.

    Raise InputError if there is none. It names the ``subject`` of such a run, and the make ``target`` that measures it.
    """
    folders = sorted(measuring.RESULTS.glob(f"*-{suffix}"))
    if not folders:
        raise ScriptError(f"{measuring.RESULTS}: has no run of {subject} yet; make one with: make {target}")
    return folders[-1]


def ended(folder: Path, picture: Picture | None = None) -> tuple[list[Event], Result]:
    """A run's events and summary. Raises InputError where it did not come to its end, or has no such picture."""
    events = record.read(folder)
    with record.reading(folder):
        result = conclude(Run.parse(events))
    if result.ended not in ENDED:
        raise ScriptError(f"{folder}: did not come to its end; continue with: envkit bench --resume {quoted(folder)}")
    if picture is not None and (why := picture.missing(result)):
        raise ScriptError(f"{folder}: makes no page: {text(why)}; measure more blocks")
    return events, result


def session_of(folder: Path, commit: str) -> Session:
    """Return the complete blocks of a run, ended or not, that was measured with ``commit``.

    Times have DIGITS significant digits. Raise InputError for no record.
    """
    run = read(folder)
    with record.reading(folder):
        study, begin = run.study, run.beginning
        inspection = run.inspection(study.reference)
        names = [arm.name for arm in study.arms]
        timed: dict[int, dict[str, float]] = {}
        lengths = set()
        for arm in study.arms:
            for sample, steps in zip(run.samples(arm), run.timed_steps(arm), strict=True):
                timed.setdefault(sample.block, {})[arm.name] = float(f"{statistics.fmean(steps):.{DIGITS}g}")
                lengths.add(len(steps))
        complete = sorted(block for block, times in timed.items() if len(times) == len(names))
        disturbed = disturbed_arms(run.samples())
        return Session(
            began=begin.time,
            commit=commit,
            cpu=cpu_name(inspection["fingerprint"]),
            usable_cpus=inspection["facts"]["usable_cpus"],
            kernel=str(inspection["fingerprint"]["kernel"]),
            names=names,
            steps=max(lengths, default=0),
            blocks=[[timed[block][name] for name in names] for block in complete],
            disturbed=[[names.index(name) for name in names if name in disturbed.get(block, ())] for block in complete],
        )


def write_samples(path: Path, *folders: Path) -> None:
    """Write the raw samples of runs as JSON lines: of each run the facts, and then a line for each sample."""
    lines: list[dict[str, object]] = []
    for folder in folders:
        session, run = session_of(folder, ""), read(folder)
        facts = {name: getattr(session, name) for name in ("began", "cpu", "usable_cpus", "kernel", "steps")}
        lines.append({"run": run.study.title, **facts})
        disturbed = disturbed_arms(run.samples())
        for arm in run.study.arms:
            for sample, steps in zip(run.samples(arm), run.timed_steps(arm), strict=True):
                seconds = float(f"{statistics.fmean(steps):.{DIGITS}g}")
                marks = arm.name in disturbed.get(sample.block, ())
                lines.append({"arm": arm.name, "block": sample.block, "seconds": seconds, "disturbed": marks})
    atomic.write(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
    print(f"written: {path}")


def require_same(folder: Path, settings: Mapping[str, tuple[object, object]], option: str) -> None:
    """Raise InputError where a run was begun with other settings; each is what it was before and what it is now.

    ``option`` gives another place for the run.
    """
    for name, (before, now) in settings.items():
        if before != now:
            raise ScriptError(
                f"{folder}: was measured with {name} {before}, and now it is {now}; "
                f"move it away, or give another with {option}"
            )


def data(result: Result) -> str:
    """What was trained on, without where it lies."""
    location = result.study.data_of(result.study.reference)
    return {SYNTHETIC: SYNTHETIC, GENERATED: text(result.data_source)}.get(location, "Fashion-MNIST")


def shown(name: str, alternative: str) -> str:
    """The picture for the text of a page, in the theme of whoever reads it; ``name`` is its file's, without theme."""
    return (
        f'<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="{name}-dark.svg">\n'
        f'  <img alt="{html.escape(alternative)}" src="{name}-light.svg">\n</picture>'
    )


def write(
    path: Path, page_parts: Sequence[str], picture: Picture, result: Result, alternative: str, folder: Path
) -> None:
    """Write the page of the run in ``folder``, its picture in each theme, and its raw samples.

    ``alternative`` is read out instead of the picture.
    """
    page.write(path, page_parts)
    write_samples(path.with_suffix(".jsonl"), folder)
    draw(path.with_suffix(""), picture, result, alternative)


def draw(path: Path, picture: Picture, result: Result, alternative: str) -> None:
    """The picture as a file for each theme, which is added to ``path``."""
    save(path, pictures.svg(picture, result, narrow=False, alternative=alternative))


def save(path: Path, drawn: str) -> None:
    """An element of ``style.to_svg`` as a file for each theme, which is added to ``path``."""
    for theme, colours in THEMES.items():
        file, coloured = path.with_name(f"{path.name}-{theme}.svg"), drawn
        for name, colour in colours.items():
            coloured = coloured.replace(f"var(--{name})", colour)
        atomic.write(file, coloured.replace("<svg ", f"<svg {NAMESPACES} ", 1).encode())
        print(f"written: {file}")


def items(rows: Iterable[Row]) -> str:
    """A list; what has no label goes on below the one before it."""
    return "\n".join(f"- {row.label}: {text(row.text)}" if row.label else f"  - {text(row.text)}" for row in rows)
