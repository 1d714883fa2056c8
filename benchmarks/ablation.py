"""The page of ``envkit ablate`` runs, from their records: what each setting of a profile is worth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from envkit.analysis.summary import Summary
from envkit.bench import record
from envkit.bench.record import Event
from envkit.rendering import text
from envkit.report import ablation, advice, certainty, lines, pictures, reproduce, tables, verdict

from benchmarks import page, recorded, script
from benchmarks.errors import ScriptError

PICTURE = "Speedups of {} and of its parts, with their 95% intervals"


def main() -> int:
    parser = recorded.parser("ablation", __doc__)
    parser.add_argument("others", metavar="DIR", type=Path, nargs="*", help="more runs for the same page")
    arguments = parser.parse_args()
    folder = arguments.folder or recorded.latest("ablated", "a profile that is taken apart", "ablate")
    runs = {one: recorded.ended(one, pictures.FOREST) for one in (folder, *arguments.others)}
    parts, drawn = [], dict[str, Summary]()
    for one, (events, summary) in runs.items():
        if not summary.plan.ablated:
            raise ScriptError(f"{one}: takes no profile apart; runs of make ablate do")
        if summary.plan.whole.name in drawn:
            raise ScriptError(f"{one}: takes {summary.plan.whole.name} apart, as another of these runs does; name one")
        drawn[summary.plan.whole.name] = summary
        with record.reading(one):
            parts += _of_run(events, summary, arguments.page.stem)
    every = [event for events, _ in runs.values() for event in events]
    where = lines.machine(runs[folder][1])
    page.write(arguments.page, [page.heading("What of a profile makes it faster?", QUESTION, every, where), *parts])
    for name, summary in drawn.items():
        picture = arguments.page.with_name(f"{arguments.page.stem}-{name}")
        recorded.draw(picture, pictures.FOREST, summary, PICTURE.format(name))
    return 0


def _of_run(events: Sequence[Event], summary: Summary, stem: str) -> list[str]:
    name = summary.plan.whole.name
    settings, took = ablation.table(summary), tables.all_arms(summary)
    said = [*ablation.notes(summary), *lines.rows(summary), *certainty.rows(summary), *advice.rows(summary)]
    return [
        f"## {name}",
        f"**{text(verdict.headline(summary).text)}**",
        f"The run: `{reproduce.started_with(events)}`",
        page.table(settings.header, settings.rows),
        text(settings.note) if settings.note else "",
        recorded.shown(f"{stem}-{name}", PICTURE.format(name)),
        page.table(tables.header(summary, wide=True), took, numbers_from=1),
        recorded.items(said),
    ]


QUESTION = """A profile, each of its settings alone, and the profile without each, in one interleaved run: fresh
processes, blocks in random order, one error rate for all comparisons of a run together. A speedup is the time of what
is on its other side divided by its own. What the verdicts mean: [profiles.md](../profiles.md#take-a-profile-apart)."""


if __name__ == "__main__":
    sys.exit(script.run("ablation", main))
