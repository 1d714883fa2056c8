"""The page of a ``envkit matrix`` run, from its record: all profiles that apply to a machine, the fastest first."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from envkit.analysis import ranking
from envkit.analysis.result import Result
from envkit.bench import record
from envkit.bench.record import Event
from envkit.profiles import profile
from envkit.rendering import text
from envkit.report import advice, cautions, certainty, commands, lines, observed, pictures, tables

from benchmarks import page, recorded, script

PICTURE = "The speedup of each profile over the baseline, with its 95% interval"


def main() -> int:
    arguments = recorded.parser("matrix", __doc__).parse_args()
    folder = arguments.folder or recorded.latest("matrix", "all profiles", "matrix")
    events, result = recorded.ended(folder, pictures.FOREST)
    with record.reading(folder):
        page_parts = _page(events, result)
    recorded.write(arguments.page, page_parts, pictures.FOREST, result, PICTURE, folder)
    return 0


def _page(events: Sequence[Event], result: Result) -> list[str]:
    rows = {row[0]: row[1:] for row in tables.all_arms(result)}
    effort, (marks, _) = tables.header(tables.columns(result, wide=True))[1:], cautions.legend(result)
    ranking_rows = [[*cells[:4], marks.get(cells[0], ""), *rows[cells[0]]] for cells in tables.ranked(result)]
    rows_below = [*lines.rows(result), *certainty.rows(result), *observed.rows(result), *advice.rows(result)]
    return [
        page.heading("Which profile is the fastest here?", QUESTION, events, lines.machine(result)),
        "**SYNTHETIC DATA: this is not Fashion-MNIST.**" if result.synthetic else "",
        f"The run: `{commands.started_with(events)}`; data: {recorded.data(result)}",
        "## The ranking",
        page.table(["profile", "speedup", "95% CI", "difference", "cautions", *effort], ranking_rows, numbers_from=5),
        text(legend) if (legend := tables.legend(result)) else "",
        recorded.items(rows_below),
        "## What they are",
        page.table(("profile", "what it does", "known to help", "known to hurt"), _about(result)),
    ]


def _about(result: Result) -> list[list[str]]:
    """What each profile says of itself, in the ranking's order; one that is no longer there has its title only."""
    arms = {arm.name: arm.profile for arm in result.study.arms}
    shipped = {name: profile.load(name) for name in profile.names()}
    rows = []
    for name in ranking.order(result.comparisons, result.study.arms, result.study.view):
        shipped_profile = shipped.get(arms[name])
        more = [shipped_profile.helps or "", shipped_profile.hurts or ""] if shipped_profile else ["", ""]
        rows.append([name, result.environments[name].title, *more])
    return rows


QUESTION = """The profiles of one `envkit matrix` run, which are all that apply here unless some are named, and the
baseline, in one interleaved run: fresh processes, blocks in random order, one error rate for all of them together. A
speedup is the baseline's time divided by the profile's."""

if __name__ == "__main__":
    sys.exit(script.run("matrix", main))
