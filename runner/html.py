"""A run's report as one page that needs nothing else: no network, no scripts, no other file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from runner import (
    across,
    advice,
    details,
    gpu_wording,
    grid,
    image_wording,
    pictures,
    reproduce,
    scaling_wording,
    tables,
    wording,
)
from runner.learning import learnt
from runner.pictures import Picture
from runner.plan import Arm
from runner.record import Event
from runner.summary import Summary
from runner.wording import Row

# With more profiles than this, what there is of each is folded up.
UNFOLDED = 3
READING = {
    "forest": "Each square is a speedup, and the line through it its interval: where that leaves out 1, a difference "
    "is found. Green is faster, orange slower, blue neither.",
    "distributions": "How often a step takes how long: all timed steps of all samples. The axis leaves out the slowest "
    "and fastest 0.5%; the slowest step is given in figures.",
    "grid": "One line for each number of workers: the median of its samples, with the least and the most of any.",
    "time-course": "One point for each sample, at the time when it began. Equal distances are equal percentages "
    "everywhere.",
}


@dataclass(frozen=True)
class Headline:
    """What was found of one profile; ``weight`` is that of its worst or best row."""

    arm: str
    text: str
    weight: str
    rest: list[Row]


@dataclass(frozen=True)
class Drawn:
    """A picture at both widths, or why it is ``missing``."""

    name: str
    title: str
    reading: str
    missing: str | None
    wide: Markup | None = None
    narrow: Markup | None = None


@dataclass(frozen=True)
class Sides:
    """What one profile's workers were started with beside the reference's: name, there, here, and whether they differ.

    ``images`` has what else differs between the two, of their images and limits.
    """

    arm: str
    rows: list[tuple[str, str, str, bool]]
    images: list[tuple[str, str, str]]


def page(folder: Path, events: Sequence[Event], summary: Summary) -> str:
    """The page. The same record at the same place always gives the same bytes."""
    environment = Environment(
        loader=PackageLoader("runner"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    plan = summary.plan
    chosen = (pictures.GRID, *pictures.PICTURES) if grid.is_grid(plan) else pictures.PICTURES
    return environment.get_template("report.html.j2").render(
        summary=summary,
        folder=folder,
        quoted_folder=shlex.quote(str(folder)),
        title=_title(summary),
        reference=_reference(summary),
        unfolded=len(plan.compared) <= UNFOLDED,
        unverified=[what for seen in summary.engines.values() if (what := seen["inspection"]["unverified_packages"])],
        introduction=image_wording.introduction(summary),
        headlines=headlines(summary),
        scaling=scaling_wording.rows(summary),
        certainty=[
            *wording.certainty(summary),
            *wording.not_measured(summary),
            *gpu_wording.rows(summary),
            *learnt(summary),
        ],
        advice=[*across.wins(summary), *advice.rows(summary)],
        machine=wording.machine(summary),
        drawn={picture.name: _drawn(picture, summary) for picture in chosen},
        header=tables.header(summary),
        table=tables.all_arms(summary),
        book=tables.book(summary),
        disturbed=[(block + 1, what) for block, what in sorted(summary.marked.items())],
        shown=wording.shown,
        sides=[_sides(summary, arm) for arm in plan.compared],
        reproduce=[*(Row(*one) for one in details.surroundings(summary)), *reproduce.rows(folder, events, summary)],
    )


def _title(summary: Summary) -> str:
    """What was compared with what."""
    plan = summary.plan
    if grid.is_grid(plan):
        return f"{len(plan.arms)} settings of the loader under {plan.reference.profile}"
    names = list(dict.fromkeys(arm.profile if plan.across else arm.name for arm in plan.subjects))
    what = ", ".join(names) if len(names) <= UNFOLDED else f"{len(names)} profiles"
    where = f" on {len(plan.workloads)} workloads" if plan.across else ""
    return f"{what}{where}{f' against {_reference(summary)}' if summary.comparisons else ''}"


def _reference(summary: Summary) -> str:
    """What others are compared with; on several workloads it is the same profile on each."""
    reference = summary.plan.reference
    return reference.profile if summary.plan.across else reference.name


def headlines(summary: Summary) -> list[Headline]:
    """One for each profile that was compared, from ``wording.verdicts``; of the loader's settings the best."""
    if grid.is_grid(summary.plan):
        measured = grid.cells(summary)
        return [Headline("least time", grid.best(measured), "plain", [])] if measured else []
    found: list[Headline] = []
    for row in wording.verdicts(summary):
        if row.label:
            found.append(Headline(row.label, row.text, row.weight, []))
        else:
            last = found.pop()
            found.append(replace(last, rest=[*last.rest, row]))
    return found


def _drawn(picture: Picture, summary: Summary) -> Drawn:
    missing = picture.missing(summary)
    drawn = Drawn(picture.name, picture.title, READING[picture.name], missing)
    if missing:
        return drawn
    alternative = f"{picture.title}. {_in_words(picture, summary)}"
    wide, narrow = (Markup(pictures.svg(picture, summary, narrow, alternative)) for narrow in (False, True))
    return replace(drawn, wide=wide, narrow=narrow)


def _in_words(picture: Picture, summary: Summary) -> str:
    """For those who have a picture read out to them."""
    if picture is pictures.GRID:
        return grid.best(grid.cells(summary))
    if picture is pictures.FOREST:
        return "; ".join(f"{one.arm}: {one.text}" for one in headlines(summary))
    return "The figures are in the table 'What each took'."


def _sides(summary: Summary, arm: Arm) -> Sides:
    plan = summary.plan
    there, here = _set(summary, plan.reference_of(arm)), _set(summary, arm)
    names = dict.fromkeys([*there, *here])
    rows = [(name, there.get(name, "-"), here.get(name, "-"), there.get(name) != here.get(name)) for name in names]
    return Sides(arm.name, rows, details.differences(summary, arm))


def _set(summary: Summary, arm: Arm) -> dict[str, str]:
    environment = summary.environments[arm.name]
    libraries: dict[str, Any] = summary.inspection(arm)["libraries"]
    engine = summary.engines[arm.place]["engine"]
    found = {"profile": arm.profile, "engine": f"{arm.engine}: {engine['image']}"}
    if environment.prefix:
        found["prefix"] = " ".join(environment.prefix)
    for name, path in environment.preload.items():
        known = (libraries.get(name) or {}).get("sha256")
        found[f"preload {name}"] = f"{path} (SHA-256 {known})" if known else path
    return found | environment.variables
